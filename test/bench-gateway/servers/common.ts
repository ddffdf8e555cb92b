/**
 * @module
 * What both servers offer, and how they say where they are. Tools: `echo` gives its text back,
 * `work` takes 10 ms as a tool does that asks somebody else.
 */
import { appendFileSync } from 'node:fs';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Milliseconds that `work` takes. */
export const WORK = 10;

export const TOOLS = ['echo', 'work'].map((name) => ({
  name,
  inputSchema: { type: 'object' as const, properties: { text: { type: 'string' } } },
  annotations: { readOnlyHint: true },
}));

/** Listens on a free port and prints it. */
export const announceUrl = (server: Server): void => {
  server.listen(0, '127.0.0.1', () => {
    const { port } = server.address() as AddressInfo;
    process.stderr.write(`listening on http://127.0.0.1:${port}/mcp\n`);
  });
};

/**
 * Adds this process to the file that `--pid-file=PATH` names: the child of a proxy, whose
 * processor time nobody else could tell. A variable would not do; some proxies pass none on.
 */
export const announceProcess = (): void => {
  const [, path] = process.argv.join('\n').match(/^--pid-file=(.*)$/m) ?? [];
  if (path !== undefined) appendFileSync(path, `${process.pid}\n`);
};
