import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { META_FAILURE } from '../../src/mcp/meta.ts';
import { temporaryFolder } from '../fixtures/command.ts';
import { verifies } from '../fixtures/verifies.ts';
import { type Anything, eventually, openGateway } from './support/gateway.ts';
import { type HttpUpstream, startHttpUpstream } from './support/upstream-http.ts';
import { stdioUpstream } from './support/upstream-server.ts';

const MIB = 1024 * 1024;
const OK = { content: [{ type: 'text', text: 'ok' }] };
const quick = { restart: { initialDelay: 10, maxDelay: 100 }, retry: false, breaker: false };

/** One of the ways in which a server fails. */
interface Fault {
  readonly name: string;
  /** Makes it fail in the middle of `call`, whose outcome it gives. */
  readonly strike: (scene: Scene) => Promise<Anything>;
  /** Codes of the structured failure; none: it is no failure at all. */
  readonly codes?: readonly string[];
  /** The servers to which it happens. */
  readonly at: 'stdio' | 'http';
}

type Caller = (name: string, args?: object) => Promise<Anything>;

interface Scene {
  readonly call: Caller;
  readonly http: HttpUpstream;
  readonly pid: () => Promise<number>;
}

const killDuring = async ({ call, pid }: Scene, tool: string, args?: object) => {
  const victim = await pid();
  const running = call(tool, args);
  await new Promise((resolve) => setTimeout(resolve, 50));
  process.kill(victim, 'SIGKILL');
  return running;
};

const LOST = ['OUTCOME_UNKNOWN', 'UPSTREAM_UNAVAILABLE', 'CONNECTION_RESET'];

const FAULTS: readonly Fault[] = [
  {
    name: 'its child is killed during a call',
    at: 'stdio',
    codes: LOST,
    strike: (scene) => killDuring(scene, 'stdio__write', { after: 'hang' }),
  },
  {
    name: 'its child ends with an exit code',
    at: 'stdio',
    codes: LOST,
    strike: ({ call }) => call('stdio__die', { code: 7 }),
  },
  {
    name: 'a call hangs',
    at: 'stdio',
    codes: ['OUTCOME_UNKNOWN', 'TIMEOUT'],
    strike: ({ call }) => call('stdio__hang'),
  },
  {
    name: 'it floods stderr',
    at: 'stdio',
    strike: ({ call }) => call('stdio__flood', { lines: 20_000 }),
  },
  {
    name: 'it prints banners to stdout',
    at: 'stdio',
    strike: ({ call }) => call('stdio__banner', { text: 'Listening on :3000\n\n{"not": "ours"' }),
  },
  {
    name: 'it answers with a line beyond what is taken',
    at: 'stdio',
    codes: ['UPSTREAM_INVALID_RESPONSE', 'OUTCOME_UNKNOWN', 'TIMEOUT'],
    strike: ({ call }) => call('stdio__big', { n: 11 * MIB }),
  },
  {
    name: 'it is restarted with no session left',
    at: 'http',
    strike: async ({ call, http }) => {
      http.restart();
      return call('http__ok');
    },
  },
  {
    name: 'it forgets its sessions',
    at: 'http',
    strike: async ({ call, http }) => {
      http.forget();
      return call('http__ok');
    },
  },
  {
    name: 'the answer is lost on its way',
    at: 'http',
    codes: LOST,
    strike: ({ call, http }) => {
      http.fail('tools/call write', { kind: 'lost' });
      return call('http__write');
    },
  },
  {
    name: 'it does not answer at all',
    at: 'http',
    codes: ['OUTCOME_UNKNOWN', 'TIMEOUT'],
    strike: ({ call, http }) => {
      http.fail('tools/call ok', { kind: 'hang' });
      return call('http__ok');
    },
  },
  {
    name: 'it asks to wait',
    at: 'http',
    codes: ['RATE_LIMITED'],
    strike: ({ call, http }) => {
      http.fail('tools/call ok', { kind: 'status', status: 429, headers: { 'retry-after': '7' } });
      return call('http__ok');
    },
  },
];

describe('while a server fails, other servers and clients see nothing', () => {
  verifies(
    'gateway.isolation',
    async () => {
      const http = await startHttpUpstream();
      onTestFinished(() => http.close());
      const resilience = { ...quick, timeout: 700, deadline: 5_000, maxMessageBytes: 2 * MIB };
      const gateway = await openGateway({
        stdio: { ...stdioUpstream(), resilience },
        http: { url: http.url, resilience },
        other: stdioUpstream(),
      });
      const victim = await gateway.connect();
      const bystander = await gateway.connect();
      const pidOf = async (call: Caller) => (await call('stdio__whoami')).structuredContent.pid;
      const bystanderPid = await pidOf(bystander.call);

      for (const { name, at, codes, strike } of FAULTS) {
        // Calls of everybody else, one after the other, for as long as it lasts.
        let over = false;
        const others = (async () => {
          let made = 0;
          while (!over || made < 3) {
            expect(await bystander.call('other__ok'), name).toEqual(OK);
            expect(await victim.call('other__ok'), name).toEqual(OK);
            if (at === 'stdio') {
              expect(await bystander.call('stdio__ok'), name).toEqual(OK);
              expect(await bystander.call('http__ok'), name).toEqual(OK);
            }
            made += 1;
          }
        })();
        const outcome = await strike({
          call: victim.call,
          http,
          pid: () => pidOf(victim.call),
        });
        over = true;
        await others;
        if (codes) {
          expect(outcome, name).toMatchObject({ isError: true });
          expect(codes, name).toContain(outcome._meta[META_FAILURE].code);
          expect(outcome.content[0].text, name).toContain(`[${outcome._meta[META_FAILURE].code}]`);
        } else {
          expect(outcome, name).not.toHaveProperty('isError');
        }
        // And then it works again.
        await eventually(async () => (await victim.call(`${at}__ok`)).isError !== true);
      }
      // Nobody's child but the victim's own was touched.
      expect(await pidOf(bystander.call)).toBe(bystanderPid);
    },
    120_000,
  );

  test('what is large but within the limit passes', async () => {
    const gateway = await openGateway({ one: stdioUpstream() }, {}, { transparent: true });
    const { call } = await gateway.connect();
    expect((await call('big', { n: 11 * MIB })).content[0].text).toHaveLength(11 * MIB);
  });

  test('a write is executed once, whatever is killed when', async () => {
    const writes = join(temporaryFolder(), 'writes');
    const gateway = await openGateway(
      { one: { ...stdioUpstream({ writes }), resilience: quick } },
      {},
      { transparent: true },
    );
    const { call } = await gateway.connect();
    for (let key = 0; key < 5; key += 1) {
      const result = await call('write', { key: String(key), after: 'die' });
      expect(result._meta[META_FAILURE].code).toBe('OUTCOME_UNKNOWN');
      await eventually(async () => (await call('ok')).isError !== true);
    }
    expect(readFileSync(writes, 'utf8')).toBe('write 0\nwrite 1\nwrite 2\nwrite 3\nwrite 4\n');
  });
});
