/**
 * @module
 * What a tool of the gateway's own is told of its call, made out of what the session knows of its
 * client. The twin of `mcp/tool-context.ts` for a session without a server of the SDK.
 */
import type { ToolContext } from '../mcp/tool.ts';
import type { Clock } from '../resilience/clock.ts';
import { isJson } from './catalog-kinds.ts';
import type { ClientRequests } from './relay-client.ts';
import type { Call } from './relay-methods.ts';
import type { ClientFacts, Json } from './types.ts';

/** What is known of the client when it calls. */
export interface CallerFacts extends ClientFacts {
  readonly principal: string | undefined;
  /** Undefined on transports without sessions. */
  readonly sessionId: string | undefined;
}

/** Milliseconds that a person has for an answer. */
const TIME_TO_ANSWER = 5 * 60_000;

type Elicit = NonNullable<ToolContext['elicit']>;

const isAction = (action: unknown): action is Awaited<ReturnType<Elicit>>['action'] =>
  action === 'accept' || action === 'decline' || action === 'cancel';

const textAt = (info: Json, key: string): string => {
  const text = info[key];
  return typeof text === 'string' ? text : '';
};

/** The client of a session, as tools of the gateway's own see it. */
export class OwnCaller {
  readonly #client: ClientRequests;
  readonly #clock: Clock;
  #gone = new AbortController();

  constructor(client: ClientRequests, clock: Clock) {
    this.#client = client;
    this.#clock = clock;
  }

  /** The session has ended, or the client has gone, as far as anybody can tell. */
  gone(): void {
    this.#gone.abort();
    // It may come back all the same.
    this.#gone = new AbortController();
  }

  /** What is told of one call. */
  contextOf(call: Call, facts: CallerFacts): ToolContext {
    const { capabilities, clientInfo, principal, sessionId } = facts;
    const name = textAt(clientInfo, 'name');
    const version = textAt(clientInfo, 'version');
    const can = capabilities.elicitation;
    // One that names no mode means forms: there were no others before 2025-11-25.
    const asks = isJson(can) && (can.url === undefined || can.form !== undefined);
    return {
      signal: call.signal,
      ...(sessionId !== undefined && { sessionId, sessionEnded: this.#gone.signal }),
      ...(name !== '' && { client: { name, version } }),
      ...(principal !== undefined && { principal }),
      ...(isJson(call.params?._meta) && { meta: call.params._meta }),
      ...(asks && { elicit: (message, schema) => this.#elicit(call, message, schema) }),
      progress: () => {},
    };
  }

  async #elicit(call: Call, ...[message, requestedSchema]: Parameters<Elicit>): ReturnType<Elicit> {
    const limit = new AbortController();
    const timer = this.#clock.setTimer(TIME_TO_ANSWER, () =>
      limit.abort(new Error('nobody answered within five minutes')),
    );
    try {
      const params = { message, requestedSchema };
      const { action, content } = await this.#client.ask('elicitation/create', params, {
        signal: AbortSignal.any([call.signal, limit.signal]),
        related: call.id,
        otherwise: () => undefined,
        onProgress: () => {},
      });
      if (!isAction(action)) throw new Error('the client did not say what the person did');
      return { action, ...(isJson(content) && { content }) };
    } finally {
      timer.cancel();
    }
  }
}
