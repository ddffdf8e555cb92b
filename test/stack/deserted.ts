/**
 * @module
 * A gateway whose servers go away: one over HTTP, which is stopped, and a child over stdio, which
 * is killed and then cannot be started again.
 */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './compose.ts';
import type { Loops } from './loops.ts';
import { freePorts, until } from './processes.ts';
import { type Caller, type ClientTrace, type StackServer, startServer } from './server.ts';
import type { Stack } from './stack.ts';
import { environmentOf, startUpstreams, weatherOf } from './traffic.ts';

/** Names of the gateway's servers. */
export const UPSTREAMS = ['child', 'remote'] as const;

/** A server of somebody else. */
const MEMORY = join(root, 'node_modules/@modelcontextprotocol/server-memory/dist/index.js');

/** It is tried every second, so that it is soon over when it is over. */
const RESILIENCE = {
  restart: { initialDelay: 100, maxDelay: 1_000 },
  breaker: { openDuration: 1_000, openBackoff: 1 },
};

interface Child {
  /** Its entry in the configuration. */
  readonly entry: object;
  kill(): void;
  /** Whether it can be started. */
  mend(works: boolean): void;
}

/** A child whose start a file forbids, as a package that cannot be fetched would. */
const childIn = (folder: string): Child => {
  const pid = join(folder, 'child.pid');
  const broken = join(folder, 'child.broken');
  const script =
    'echo $$ > "$CHILD_PID"; if [ -e "$CHILD_BROKEN" ]; then echo broken >&2; exit 1; fi; exec "$@"';
  return {
    entry: {
      command: '/bin/sh',
      args: ['-c', script, 'sh', process.execPath, MEMORY],
      env: { CHILD_PID: pid, CHILD_BROKEN: broken, MEMORY_FILE_PATH: join(folder, 'memory.json') },
      resilience: RESILIENCE,
    },
    kill: () => void process.kill(Number(readFileSync(pid, 'utf8')), 'SIGKILL'),
    mend: (works) => (works ? rmSync(broken, { force: true }) : writeFileSync(broken, '')),
  };
};

const answers = (call: () => Promise<{ readonly isError?: boolean }>) => async () =>
  (await call()).isError !== true;

/** Brings it about; resolves with what ends it. */
export const deserted = async (
  stack: Stack,
  loops: Loops,
  trace: ClientTrace,
): Promise<() => Promise<void>> => {
  const upstreams = await startUpstreams();
  const [port = 0] = await freePorts(1);
  const start = (): Promise<StackServer> =>
    startServer(stack, {
      name: 'deserted',
      env: environmentOf(upstreams),
      config: { http: { rateLimit: false } },
      port,
    });
  const server = await start();
  const child = childIn(stack.folder);
  const remote = { type: 'http', url: server.url, resilience: RESILIENCE };
  const gateway = await startServer(stack, {
    name: 'gateway',
    command: 'gateway',
    config: { mcpServers: { child: child.entry, remote } },
  });
  const caller: Caller = await gateway.connect();
  const ask = () => weatherOf(caller, 'Tokyo');
  const read = () => caller.call('read_graph');
  await until('the gateway to have the tools of both', async () => {
    const names = await caller.tools();
    return ['get_weather', 'read_graph'].every((name) => names.includes(name));
  });
  await weatherOf(caller, 'Nowhere', trace);

  await until('the child to answer', answers(read));
  child.kill();
  await until('the child to be started again', answers(read));
  child.mend(false);
  child.kill();
  await server.program.stop();
  loops.start(ask, 500);
  loops.start(read, 500);
  return async () => {
    child.mend(true);
    await start();
    await until('the gateway to reach its server again', answers(ask));
    await until('the gateway to start its child again', answers(read));
  };
};
