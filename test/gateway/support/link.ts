import { existsSync, readFileSync } from 'node:fs';
import { onTestFinished } from 'vitest';
import { createLink, type LinkEnvironment } from '../../../src/gateway/create-link.ts';
import type {
  Json,
  Link,
  LinkEnd,
  LinkFailure,
  UpstreamAddress,
  UpstreamConfig,
} from '../../../src/gateway/types.ts';
import type { JSONRPCMessage, RequestId } from '../../../src/mcp/jsonrpc.ts';
import { until } from '../../mcp/support/wait.ts';
import { upstreamConfig } from './link-config.ts';

/** A link, and everything that it says. */
export interface TestLink {
  readonly link: Link;
  readonly messages: readonly { readonly message: Json; readonly related: RequestId | undefined }[];
  readonly lost: readonly { readonly id: RequestId; readonly failure: LinkFailure }[];
  readonly ends: readonly LinkEnd[];
  readonly logged: readonly string[];
  /** Sends it and returns its id, without waiting for the answer. */
  ask(method: string, params?: Json, signal?: AbortSignal): RequestId;
  /** Resolves with the whole answer; rejects when the link says that there will be none. */
  request(method: string, params?: Json, signal?: AbortSignal): Promise<Json>;
  call(name: string, args?: Json, signal?: AbortSignal): Promise<Json>;
  notify(method: string, params?: Json): Promise<void>;
  /** initialize, as a client does it. */
  initialize(): Promise<Json>;
}

/** A link to the address, closed when the test ends. */
export const testLink = (
  address: UpstreamAddress,
  { config = {}, ...environment }: LinkEnvironment & { config?: Partial<UpstreamConfig> } = {},
): TestLink => {
  const logged: string[] = [];
  const log = (line: string): void => void logged.push(line);
  const link = createLink(upstreamConfig(address, config), { log, ...environment });
  const messages: { message: Json; related: RequestId | undefined }[] = [];
  const lost: { id: RequestId; failure: LinkFailure }[] = [];
  const ends: LinkEnd[] = [];
  const refused = new Map<RequestId, unknown>();
  link.onmessage = (message, related) =>
    void messages.push({ message: message as unknown as Json, related });
  link.onlost = (id, failure) => void lost.push({ id, failure });
  link.onend = (end) => void ends.push(end);
  onTestFinished(() => link.close());
  let lastId = 0;

  const ask = (method: string, params: Json = {}, signal?: AbortSignal): RequestId => {
    lastId += 1;
    const id = lastId;
    const message = { jsonrpc: '2.0', id, method, params } as unknown as JSONRPCMessage;
    link.send(message, signal).catch((error: unknown) => refused.set(id, error));
    return id;
  };
  const request = async (method: string, params?: Json, signal?: AbortSignal): Promise<Json> => {
    const id = ask(method, params, signal);
    const answer = () =>
      messages.find(({ message }) => message.id === id && !('method' in message))?.message;
    const gone = () => lost.find((one) => one.id === id)?.failure;
    await until(
      () => answer() !== undefined || gone() !== undefined || refused.has(id) || ends.length > 0,
    );
    const found = answer();
    if (found !== undefined) return found;
    throw refused.get(id) ?? gone() ?? new Error(`ended: ${ends[0]?.reason}`);
  };
  const notify = (method: string, params: Json = {}): Promise<void> =>
    link.send({ jsonrpc: '2.0', method, params } as unknown as JSONRPCMessage);
  return {
    link,
    messages,
    lost,
    ends,
    logged,
    ask,
    request,
    notify,
    call: (name, args = {}, signal) => request('tools/call', { name, arguments: args }, signal),
    initialize: async () => {
      const answer = await request('initialize', {
        protocolVersion: '2025-11-25',
        capabilities: {},
        clientInfo: { name: 'test', version: '1' },
      });
      link.initialized('2025-11-25');
      await notify('notifications/initialized');
      return answer;
    },
  };
};

/** An open link. */
export const openLink = async (...args: Parameters<typeof testLink>): Promise<TestLink> => {
  const opened = testLink(...args);
  await opened.link.open();
  return opened;
};

/** The text of a tool result. */
export const textOf = (answer: Json): string =>
  (answer.result as { content: { text: string }[] }).content[0]?.text ?? '';

/** True while a process of that id runs; one that has ended and was not collected does not. */
export const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch (error) {
    // Systems without /proc: what the signal said has to do.
    return (error as NodeJS.ErrnoException).code === 'ENOENT' && !existsSync('/proc/self');
  }
};
