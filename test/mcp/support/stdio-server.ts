/** A stdio server as people write them: with a port and a timer that keep the process alive. */
import { createServer as createHttpServer } from 'node:http';
import { createServer } from '../../../src/mcp/server.ts';
import { serveStdio } from '../../../src/mcp/transports/stdio.ts';
import { heldTools, text } from './tools.ts';

createHttpServer().listen(0, '127.0.0.1');
setInterval(() => {}, 1_000);

const { tools, calls } = heldTools();
const door = await serveStdio({
  createServer: createServer({ name: 'child', version: '1', tools }),
  input: process.stdin,
  output: process.stdout,
});

const watch = setInterval(() => {
  const [call] = calls;
  if (!call) return;
  clearInterval(watch);
  process.stdout.write('{"jsonrpc":"2.0","method":"notifications/message","params":{}}\n');
  process.stdin.once('end', () => setImmediate(() => call.answer(text('finished'))));
}, 5);

await door.closed;
process.exit(0);
