/**
 * @module
 * The fixture `U`: a scripted MCP server, written by hand so that every fault is exact.
 *
 * As a stdio child: `stdioUpstream({ writes: file })` gives `{ command, args }`.
 * As an HTTP server in this process: `startHttpUpstream()` of upstream-http.ts; as an HTTP
 * process: `--http 0` (Streamable HTTP on /mcp, legacy SSE on /sse), which prints its URL to
 * stderr: `listening on http://127.0.0.1:1234/mcp`.
 *
 * What the tools do stands in upstream-tools.ts, the settings in upstream-session.ts:
 * `--name N --writes FILE --journal FILE --tools 5000 --odd --pages 3 --repeat-cursor
 * --silent METHOD (repeatable) --protocol V --capabilities JSON --instructions TEXT`.
 *
 * For the process alone:
 * - `--banner N`: N lines that are no JSON on stdout before anything else
 * - `--noise N`: N lines on stderr before anything else
 * - `--say TEXT`: one line on stderr before anything else
 * - `--exit CODE`: ends at once, after what was printed
 * - `--start-after MS`: reads nothing before that
 * - `--grandchild FILE`: starts a child of its own, which outlives its stdin, and writes its pid there
 * - `--ignore-eof`: does not end with its stdin
 * - `--ignore-sigterm`
 */
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { startHttpUpstream } from './upstream-http.ts';
import { newRecord, ScriptedSession, type UpstreamSettings } from './upstream-session.ts';

const FILE = fileURLToPath(import.meta.url);

/** Switches of the process alone. */
export interface ProcessSettings {
  readonly banner?: number;
  readonly noise?: number;
  readonly say?: string;
  readonly exit?: number;
  readonly startAfter?: number;
  readonly grandchild?: string;
  readonly ignoreEof?: boolean;
  readonly ignoreSigterm?: boolean;
  readonly http?: number;
}

const kebab = (key: string): string =>
  key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);

/** How to start it as a child with these settings. */
export const stdioUpstream = (
  settings: UpstreamSettings & ProcessSettings = {},
): { command: string; args: string[] } => ({
  command: process.execPath,
  args: [
    FILE,
    ...Object.entries(settings).flatMap(([key, value]) => {
      if (value === undefined || value === false) return [];
      if (value === true) return [`--${kebab(key)}`];
      const values = Array.isArray(value) ? value : [value];
      return values.map(
        (one) => `--${kebab(key)}=${typeof one === 'object' ? JSON.stringify(one) : one}`,
      );
    }),
  ],
});

const readSettings = () => {
  const string = { type: 'string' } as const;
  const flag = { type: 'boolean' } as const;
  const { values } = parseArgs({
    options: {
      name: string,
      writes: string,
      journal: string,
      tools: string,
      odd: flag,
      pages: string,
      'repeat-cursor': flag,
      silent: { type: 'string', multiple: true },
      protocol: string,
      capabilities: string,
      instructions: string,
      banner: string,
      noise: string,
      say: string,
      exit: string,
      'start-after': string,
      grandchild: string,
      'ignore-eof': flag,
      'ignore-sigterm': flag,
      http: string,
    },
  });
  const { tools, pages, capabilities, 'repeat-cursor': repeatCursor } = values;
  const settings: UpstreamSettings = {
    ...values,
    tools: Number(tools ?? 0),
    pages: Number(pages ?? 1),
    capabilities: capabilities === undefined ? undefined : JSON.parse(capabilities),
    repeatCursor,
  };
  return { values, settings };
};

const serveStdio = (settings: UpstreamSettings, ignoreEof: boolean): void => {
  const session = new ScriptedSession(settings, newRecord(), {
    session: String(process.pid),
    send: (message) => void process.stdout.write(`${JSON.stringify(message)}\n`),
    print: (text) => void process.stdout.write(text),
    die: (code, signal) => {
      if (signal) process.kill(process.pid, signal);
      else process.exit(code);
    },
  });
  // A reader that has gone is no reason to die of it: how this process ends is in the switches.
  process.stdout.on('error', () => {});
  const lines = createInterface({ input: process.stdin, crlfDelay: Number.POSITIVE_INFINITY });
  lines.on('line', (line) => session.receive(JSON.parse(line)));
  lines.on('close', () => {
    if (!ignoreEof) process.exit(0);
  });
};

const main = async (): Promise<void> => {
  const { values, settings } = readSettings();
  if (values['ignore-sigterm']) process.on('SIGTERM', () => {});
  if (values['ignore-eof']) setInterval(() => {}, 60_000);
  for (let n = 0; n < Number(values.banner ?? 0); n += 1)
    process.stdout.write(`Banner line ${n}\n`);
  for (let n = 0; n < Number(values.noise ?? 0); n += 1) process.stderr.write(`noise ${n}\n`);
  if (values.say) process.stderr.write(`${values.say}\n`);
  if (values.grandchild) {
    const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 60000)'], {
      stdio: 'ignore',
    });
    writeFileSync(values.grandchild, String(child.pid));
  }
  if (values.exit !== undefined) {
    process.exitCode = Number(values.exit);
    return;
  }
  if (values.http !== undefined) {
    const server = await startHttpUpstream({ ...settings, port: Number(values.http) });
    process.stderr.write(`listening on ${server.url}\n`);
    return;
  }
  setTimeout(
    () => serveStdio(settings, values['ignore-eof'] ?? false),
    Number(values['start-after'] ?? 0),
  );
};

if (process.argv[1] === FILE) await main();
