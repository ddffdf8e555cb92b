/**
 * @module
 * The client of the lean world: written by hand, a fraction of what an SDK client costs, so that
 * what stands in the middle is what limits.
 */
import type { UpstreamAddress } from '../../src/gateway/types.ts';
import type { Connection } from './load.ts';
import { openHttp } from './wire-http.ts';
import { openStdio } from './wire-stdio.ts';

/** An answer as it came. */
export interface Answer {
  readonly id?: unknown;
  readonly result?: Readonly<Record<string, unknown>>;
  readonly error?: unknown;
}

/** Carries messages as JSON. */
export interface Wire {
  /** Resolves with the answer to a request; rejects when the connection ends without it. */
  ask(id: number, message: string): Promise<Answer>;
  /** Sends what has no answer. */
  tell(message: string): Promise<void>;
  readonly pid?: number | undefined;
  close(): Promise<void>;
}

/** Opens a session. */
export const connect = async (address: UpstreamAddress): Promise<Connection> => {
  const wire = address.kind === 'stdio' ? openStdio(address) : openHttp(address.url);
  let lastId = 0;
  const request = async (
    method: string,
    params: object,
  ): Promise<Readonly<Record<string, unknown>>> => {
    lastId += 1;
    const message = { jsonrpc: '2.0', id: lastId, method, params };
    const answer = await wire.ask(lastId, JSON.stringify(message));
    if (answer.result === undefined) throw new Error(`${method}: ${JSON.stringify(answer)}`);
    return answer.result;
  };
  await request('initialize', {
    protocolVersion: '2025-06-18',
    capabilities: {},
    clientInfo: { name: 'bench', version: '1' },
  });
  await wire.tell('{"jsonrpc":"2.0","method":"notifications/initialized"}');
  await request('tools/list', {});
  return {
    call: async (name, text) => {
      const answer = await request('tools/call', { name, arguments: { text } });
      const [content] = answer.content as { text: string }[];
      if (content?.text.length !== text.length)
        throw new Error(`wrong answer: ${JSON.stringify(answer)}`);
    },
    pid: wire.pid,
    close: () => wire.close(),
  };
};
