/**
 * @module
 * The server of the lean world: written by hand, to cost as little as a server can, so that what
 * stands in front of it is what limits. `node lean.ts` speaks on stdio, `node lean.ts --http` on a
 * free port that it prints. A POST is answered by an SSE stream of one event, which is what servers
 * on the SDK do, so that a proxy has the same to read in both worlds; with `--json` by plain JSON.
 * It is no example: it checks next to nothing, and offers no stream of its own (405 to GET).
 */
import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { announceProcess, announceUrl, TOOLS, WORK } from './common.ts';

interface Message {
  readonly id?: string | number;
  readonly method?: string;
  readonly params?: {
    readonly protocolVersion?: string;
    readonly name?: string;
    readonly arguments?: { readonly text?: unknown };
  };
}

const VERSIONS: readonly unknown[] = ['2025-03-26', '2025-06-18', '2025-11-25'];
const LIST = JSON.stringify({ tools: TOOLS });

const initialized = (asked: unknown): string =>
  JSON.stringify({
    protocolVersion: VERSIONS.includes(asked) ? asked : '2025-11-25',
    capabilities: { tools: {} },
    serverInfo: { name: 'bench', version: '1' },
  });

/** Hands the answer to a request over, as JSON; false for what asks for none. */
const answer = ({ id, method, params }: Message, reply: (json: string) => void): boolean => {
  if (id === undefined || method === undefined) return false;
  const head = `{"jsonrpc":"2.0","id":${JSON.stringify(id)},`;
  const done = (result: string): void => reply(`${head}"result":${result}}`);
  const refused = (code: number, message: string): void =>
    reply(`${head}"error":${JSON.stringify({ code, message })}}`);
  if (method === 'tools/call') {
    const text = JSON.stringify(String(params?.arguments?.text ?? ''));
    const result = `{"content":[{"type":"text","text":${text}}]}`;
    if (params?.name === 'echo') done(result);
    else if (params?.name === 'work') setTimeout(done, WORK, result);
    else refused(-32602, `unknown tool: ${params?.name}`);
  } else if (method === 'initialize') done(initialized(params?.protocolVersion));
  else if (method === 'ping') done('{}');
  else if (method === 'tools/list') done(LIST);
  else refused(-32601, 'Method not found');
  return true;
};

/** Undefined where it is no JSON object. */
const read = (text: string): Message | undefined => {
  try {
    const message: unknown = JSON.parse(text);
    return typeof message === 'object' && message !== null ? message : undefined;
  } catch {
    return undefined;
  }
};

const sessions = new Set<string>();
const asJson = process.argv.includes('--json');
const type = asJson ? 'application/json' : 'text/event-stream';

const post = (given: string | undefined, text: string, res: ServerResponse): void => {
  const message = read(text);
  let session = given;
  if (message?.method === 'initialize') {
    session = randomUUID();
    sessions.add(session);
  }
  if (message === undefined || session === undefined || !sessions.has(session)) {
    res.writeHead(message === undefined || session === undefined ? 400 : 404).end();
    return;
  }
  const isRequest = answer(message, (json) => {
    const body = asJson ? json : `event: message\ndata: ${json}\n\n`;
    const headers = {
      'content-type': type,
      'content-length': Buffer.byteLength(body),
      'mcp-session-id': session,
    };
    res.writeHead(200, headers).end(body);
  });
  if (!isRequest) res.writeHead(202).end();
};

const serve = (req: IncomingMessage, res: ServerResponse): void => {
  const session = req.headers['mcp-session-id'];
  const id = typeof session === 'string' ? session : undefined;
  if (req.method === 'DELETE') {
    res.writeHead(id !== undefined && sessions.delete(id) ? 200 : 404).end();
    return;
  }
  if (req.method !== 'POST') {
    res.writeHead(405, { allow: 'POST, DELETE' }).end();
    return;
  }
  const chunks: Buffer[] = [];
  req.on('data', (chunk: Buffer) => chunks.push(chunk));
  req.on('end', () => post(id, Buffer.concat(chunks).toString(), res));
};

/** What is due in one turn of the event loop goes out in one write. */
const speakOnStdio = (): void => {
  let due = '';
  const flush = (): void => {
    process.stdout.write(due);
    due = '';
  };
  const reply = (json: string): void => {
    if (due === '') setImmediate(flush);
    due += `${json}\n`;
  };
  let rest = '';
  process.stdin.setEncoding('utf8').on('data', (chunk: string) => {
    const lines = `${rest}${chunk}`.split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      const message = read(line);
      if (message !== undefined) answer(message, reply);
    }
  });
};

if (process.argv.includes('--http')) announceUrl(createServer(serve));
else {
  announceProcess();
  speakOnStdio();
}
