/**
 * @module
 * One session of the scripted upstream: JSON-RPC by hand, so that every fault is exact. The
 * transports stand in upstream-server.ts (stdio) and upstream-http.ts.
 */
import { appendFileSync } from 'node:fs';
import type { Json } from '../../../src/gateway/types.ts';
import { PROMPTS, RESOURCES, TEMPLATES, toolsOf, VENDOR_RESULT } from './upstream-tools.ts';

export type Id = string | number;

/** How an upstream behaves. Every field is also a switch of the command line. */
export interface UpstreamSettings {
  /** Name in serverInfo. Default `U`. */
  readonly name?: string | undefined;
  /** Appends a line `tool key` here for each execution of write, write-idempotent and read. */
  readonly writes?: string | undefined;
  /** Appends every message received here, one JSON a line. */
  readonly journal?: string | undefined;
  /** So many further tools `tool-00001` and so on. */
  readonly tools?: number | undefined;
  /** Further tools with spaces, unicode, `__proto__` and the like in their names. */
  readonly odd?: boolean | undefined;
  /** Lists come on so many pages. Default 1. */
  readonly pages?: number | undefined;
  /** The last page points to the page `1` again, for ever. */
  readonly repeatCursor?: boolean | undefined;
  /** Methods that are never answered, such as `initialize` or `tools/list`. */
  readonly silent?: readonly string[] | undefined;
  /** Version that initialize answers with. Default: the client's. */
  readonly protocol?: string | undefined;
  /** In place of the usual capabilities. */
  readonly capabilities?: Json | undefined;
  readonly instructions?: string | undefined;
}

/** What all sessions of one upstream share, and a test may look at. */
export interface UpstreamRecord {
  initializes: number;
  /** Every message received, with the session that it came in. */
  readonly received: { readonly session: string; readonly message: Json }[];
  /** Executions of write, write-idempotent and read: `tool key`. */
  readonly writes: string[];
}

export const newRecord = (): UpstreamRecord => ({ initializes: 0, received: [], writes: [] });

/** What a transport gives a session. */
export interface Wire {
  readonly session: string;
  /** `related`: the request on whose stream it goes. */
  send(message: Json, related?: Id): void;
  /** Raw text on stdout, where there is one. */
  print(text: string): void;
  /** Ends the process, or as much as stands for it. */
  die(code: number, signal?: NodeJS.Signals): void;
}

const CAPABILITIES: Json = {
  tools: { listChanged: true },
  resources: { listChanged: true, subscribe: true },
  prompts: { listChanged: true },
  logging: {},
  completions: {},
  experimental: { 'x-vendor': { a: 1 } },
};

const object = (value: unknown): Json =>
  typeof value === 'object' && value !== null ? (value as Json) : {};
const text = (value: unknown): Json => ({
  content: [{ type: 'text', text: typeof value === 'string' ? value : JSON.stringify(value) }],
});

class RpcError extends Error {
  readonly body: Json;
  constructor(code: unknown, message: string, data?: unknown) {
    super(message);
    this.body = { code, message, ...(data === undefined ? {} : { data }) };
  }
}

export class ScriptedSession {
  readonly #settings: UpstreamSettings;
  readonly #record: UpstreamRecord;
  readonly #wire: Wire;
  readonly #running = new Map<Id, AbortController>();
  readonly #asked = new Map<Id, (answer: Json) => void>();
  #initialize: Json = {};
  #counter = 0;
  #lastId = 0;

  constructor(settings: UpstreamSettings, record: UpstreamRecord, wire: Wire) {
    this.#settings = settings;
    this.#record = record;
    this.#wire = wire;
  }

  receive(message: Json): void {
    const { session } = this.#wire;
    this.#record.received.push({ session, message });
    if (this.#settings.journal)
      appendFileSync(this.#settings.journal, `${JSON.stringify(message)}\n`);
    if (typeof message.method !== 'string') {
      this.#asked.get(message.id as Id)?.(message);
      this.#asked.delete(message.id as Id);
    } else if (message.id === undefined) {
      if (message.method === 'notifications/cancelled') {
        this.#running.get(object(message.params).requestId as Id)?.abort();
      }
    } else if (!this.#settings.silent?.includes(message.method)) {
      void this.#answer(message.id as Id, message.method, object(message.params));
    }
  }

  /** Ends what runs; nothing is answered any more. */
  close(): void {
    for (const controller of this.#running.values()) controller.abort();
  }

  async #answer(id: Id, method: string, params: Json): Promise<void> {
    const controller = new AbortController();
    this.#running.set(id, controller);
    try {
      const result = await this.#handle(id, method, params, controller.signal);
      if (!controller.signal.aborted) this.#wire.send({ jsonrpc: '2.0', id, result }, id);
    } catch (error) {
      if (controller.signal.aborted) return;
      const body =
        error instanceof RpcError ? error.body : { code: -32603, message: String(error) };
      this.#wire.send({ jsonrpc: '2.0', id, error: body }, id);
    } finally {
      this.#running.delete(id);
    }
  }

  async #handle(id: Id, method: string, params: Json, signal: AbortSignal): Promise<Json> {
    const { name = 'U', protocol, capabilities = CAPABILITIES, instructions } = this.#settings;
    switch (method) {
      case 'initialize':
        this.#record.initializes += 1;
        this.#initialize = params;
        return {
          protocolVersion: protocol ?? params.protocolVersion,
          capabilities,
          serverInfo: { name, version: '1.0.0', title: `Upstream ${name}`, 'x-vendor': true },
          ...(instructions === undefined ? {} : { instructions }),
        };
      case 'ping':
      case 'logging/setLevel':
      case 'resources/subscribe':
      case 'resources/unsubscribe':
        return {};
      case 'tools/list':
        return this.#page('tools', toolsOf(this.#settings), params);
      case 'resources/list':
        return this.#page('resources', RESOURCES, params);
      case 'resources/templates/list':
        return this.#page('resourceTemplates', TEMPLATES, params);
      case 'prompts/list':
        return this.#page('prompts', PROMPTS, params);
      case 'resources/read':
        if (params.uri === 'test://missing') throw new RpcError(-32002, 'not found', params);
        return { contents: [{ uri: params.uri, text: `${name}: ${params.uri}`, 'x-vendor': 1 }] };
      case 'prompts/get':
        return {
          messages: [
            { role: 'user', content: { type: 'text', text: `${name}: ${JSON.stringify(params)}` } },
          ],
        };
      case 'completion/complete':
        return { completion: { values: [`${name}: ${JSON.stringify(params)}`], hasMore: false } };
      case 'tools/call':
        return this.#call(id, params, signal);
      default:
        throw new RpcError(-32601, `Method not found: ${method}`);
    }
  }

  #page(key: string, items: readonly Json[], params: Json): Json {
    const { pages = 1, repeatCursor = false } = this.#settings;
    const page = Number(params.cursor ?? 0);
    const size = Math.ceil(items.length / pages);
    const next = page + 1 < pages ? String(page + 1) : repeatCursor ? '1' : undefined;
    return {
      [key]: items.slice(page * size, (page + 1) * size),
      ...(next === undefined ? {} : { nextCursor: next }),
    };
  }

  async #call(id: Id, params: Json, signal: AbortSignal): Promise<Json> {
    const name = String(params.name);
    const args = object(params.arguments);
    const number = (key: string, usual: number) => Number(args[key] ?? usual);
    switch (name) {
      case 'slow':
        await wait(number('ms', 100), signal);
        return text('slow');
      case 'hang':
        return wait(Number.POSITIVE_INFINITY, signal) as Promise<never>;
      case 'err':
        return { ...text(args.text ?? 'the tool says no'), isError: true };
      case 'throw':
        throw new Error('thrown by the handler');
      case 'rpcerr':
        throw new RpcError(args.code ?? -32602, String(args.message ?? 'scripted'), args.data);
      case 'big':
        return text('x'.repeat(number('n', 1)));
      case 'progress': {
        const progressToken = object(params._meta).progressToken;
        const total = number('n', 3);
        for (let progress = 1; progress <= total; progress += 1) {
          await wait(number('ms', 10), signal);
          if (progressToken === undefined) continue;
          const message = `step ${progress}`;
          this.#notify('notifications/progress', { progressToken, progress, total, message }, id);
        }
        return text('done');
      }
      case 'write':
      case 'write-idempotent':
      case 'read': {
        const entry = `${name} ${args.key ?? ''}`;
        this.#record.writes.push(entry);
        if (this.#settings.writes) appendFileSync(this.#settings.writes, `${entry}\n`);
        if (args.ms !== undefined) await wait(number('ms', 0), signal);
        if (args.after === 'die') this.#wire.die(1);
        if (args.after === 'die' || args.after === 'hang')
          await wait(Number.POSITIVE_INFINITY, signal);
        return text('written');
      }
      case 'die':
        this.#wire.die(number('code', 1), args.signal as NodeJS.Signals | undefined);
        return wait(Number.POSITIVE_INFINITY, signal) as Promise<never>;
      case 'banner':
        this.#wire.print(`${args.text ?? 'Server running on stdio'}\n`);
        return text('ok');
      case 'flood':
        for (let line = 0; line < number('lines', 10); line += 1) {
          process.stderr.write(`${args.text ?? 'noise'} ${line}\n`);
        }
        // Answered when all of it has left the process.
        await new Promise((resolve) => process.stderr.write('', resolve));
        return text('ok');
      case 'env':
        return { ...text('env'), structuredContent: { ...process.env } };
      case 'whoami': {
        const facts = {
          pid: process.pid,
          session: this.#wire.session,
          initialize: this.#initialize,
        };
        return { ...text(facts), structuredContent: facts };
      }
      case 'counter':
        this.#counter += 1;
        return text(this.#counter);
      case 'echo-meta':
        return { ...text(params), structuredContent: { params } };
      case 'elicit':
        return this.#ask(id, 'elicitation/create', {
          message: args.message ?? 'Your name?',
          requestedSchema: { type: 'object', properties: { name: { type: 'string' } } },
        });
      case 'sample':
        return this.#ask(id, 'sampling/createMessage', {
          messages: [{ role: 'user', content: { type: 'text', text: args.text ?? 'hello' } }],
          maxTokens: 10,
        });
      case 'roots':
        return this.#ask(id, 'roots/list', undefined);
      case 'ask':
        return this.#ask(id, String(args.method), args.params);
      case 'log':
        for (let n = 0; n < number('n', 1); n += 1) {
          this.#notify(
            'notifications/message',
            { level: args.level ?? 'info', logger: 'U', data: { n } },
            id,
          );
        }
        return text('ok');
      case 'notify':
        this.#notify(String(args.method), args.params, undefined);
        return text('ok');
      case 'changed':
        this.#notify(`notifications/${args.what ?? 'tools'}/list_changed`, undefined, undefined);
        return text('ok');
      case 'touch':
        this.#notify(
          'notifications/resources/updated',
          { uri: args.uri ?? 'test://one' },
          undefined,
        );
        return text('ok');
      case 'vendor':
        return VENDOR_RESULT;
      case 'ok':
        return text(args.text ?? 'ok');
      default:
        if (toolsOf(this.#settings).some((tool) => tool.name === name)) return text(name);
        throw new RpcError(-32602, `Unknown tool: ${name}`);
    }
  }

  #notify(method: string, params: unknown, related: Id | undefined): void {
    this.#wire.send(
      { jsonrpc: '2.0', method, ...(params === undefined ? {} : { params }) },
      related,
    );
  }

  /** Asks the client, and answers with what it said: `{result}` or `{error}` as text. */
  async #ask(related: Id, method: string, params: unknown): Promise<Json> {
    this.#lastId += 1;
    const id = `u-${this.#lastId}`;
    const answer = await new Promise<Json>((resolve) => {
      this.#asked.set(id, resolve);
      const body = params === undefined ? {} : { params };
      this.#wire.send({ jsonrpc: '2.0', id, method, ...body }, related);
    });
    const said = 'error' in answer ? { error: answer.error } : { result: answer.result };
    return { ...text(said), structuredContent: said };
  }
}

const wait = (ms: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve, reject) => {
    const stop = (): void => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = Number.isFinite(ms)
      ? setTimeout(() => {
          signal.removeEventListener('abort', stop);
          resolve();
        }, ms)
      : undefined;
    signal.addEventListener('abort', stop, { once: true });
  });
