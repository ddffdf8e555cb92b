/**
 * @module
 * What we know of the tools of an upstream: the names it has listed, what may be repeated and kept,
 * and, where asked for, a breaker for each of them.
 */

import { JsonRpcError } from '../mcp/jsonrpc.ts';
import type { KnownNames, NameKind } from '../mcp/operation-terms.ts';
import type { BreakerPermit } from '../resilience/breaker-model.ts';
import { CircuitBreaker } from '../resilience/circuit-breaker.ts';
import type { Clock } from '../resilience/clock.ts';
import { createFailure, ResilienceError } from '../resilience/failure.ts';
import { LruMap } from '../resilience/lru-map.ts';
import { AnsweredNames } from './answered-names.ts';
import type { Json, UpstreamConfig, UpstreamRequest } from './types.ts';

/** Names remembered of one list: each that is called is a series. */
const MAX_NAMES = 10_000;

/** Breakers of tools kept at most; the one that was not used for longest goes. */
const MAX_BREAKERS = 500;

/** Methods that change nothing, and may be asked again. */
const REPEATABLE: ReadonlySet<string> = new Set(
  (
    'ping tools/list resources/list resources/templates/list resources/read prompts/list ' +
    'prompts/get completion/complete tasks/get tasks/list tasks/result'
  ).split(' '),
);

/** Name of the tool that a request calls. */
export const toolOf = ({ method, params, tool }: UpstreamRequest): string | undefined => {
  if (method !== 'tools/call') return undefined;
  return tool?.name ?? (typeof params?.name === 'string' ? params.name : undefined);
};

/** Whether the tool only reads, by configuration or its own word: then answers may be kept. */
export const isReadOnly = ({ tools }: UpstreamConfig, request: UpstreamRequest): boolean => {
  const name = toolOf(request);
  if (name === undefined) return false;
  const rule = Object.hasOwn(tools, name) ? tools[name] : undefined;
  return rule?.readOnly ?? request.tool?.annotations?.readOnlyHint === true;
};

/** Whether executing the request twice does no harm. */
export const isRepeatable = (config: UpstreamConfig, request: UpstreamRequest): boolean => {
  const name = toolOf(request);
  if (name === undefined) return REPEATABLE.has(request.method);
  const rule = Object.hasOwn(config.tools, name) ? config.tools[name] : undefined;
  return (
    rule?.idempotent ??
    (isReadOnly(config, request) || request.tool?.annotations?.idempotentHint === true)
  );
};

/** The names that an upstream has listed itself, or has answered to before, for telemetry. */
export class ListedNames implements KnownNames {
  readonly tools = new Set<string>();
  readonly prompts = new Set<string>();
  readonly #answered = new AnsweredNames(this);

  /** Takes the result of any request; looks at lists alone. */
  learn(method: string, result: Json): void {
    const key =
      method === 'tools/list' ? 'tools' : method === 'prompts/list' ? 'prompts' : undefined;
    const listed = key && result[key];
    if (!key || !Array.isArray(listed)) return;
    this.#answered.listed(key);
    for (const entry of listed) {
      const name: unknown = (entry as Json | null)?.name;
      if (typeof name === 'string' && this[key].size < MAX_NAMES) this[key].add(name);
    }
  }

  answered(kind: NameKind, name: string): void {
    this.#answered.add(kind, name);
  }
}

/** What the answer says of the tool: JSON-RPC errors of the caller's making say nothing. */
const verdictOn = (answer: Json | JsonRpcError): 'success' | 'failure' | 'ignored' => {
  if (answer instanceof JsonRpcError) return answer.code === -32603 ? 'failure' : 'ignored';
  return answer.isError === true ? 'failure' : 'success';
};

/** A call that has been let through; must be settled once. */
export interface ToolPermit {
  /** @param answer what the upstream answered; undefined when it did not */
  settle(answer: Json | JsonRpcError | undefined): void;
}

const NO_BREAKER: ToolPermit = { settle() {} };

/** A breaker for each tool, in which `isError` counts and nothing that befalls the connection. */
export class ToolBreakers {
  readonly #config: UpstreamConfig;
  readonly #clock: Clock;
  readonly #breakers = new LruMap<string, CircuitBreaker>(MAX_BREAKERS);

  constructor(config: UpstreamConfig, clock: Clock) {
    this.#config = config;
    this.#clock = clock;
  }

  /**
   * Must precede the call.
   *
   * @param known whether the upstream has listed such a tool: others are none of our business
   * @throws ResilienceError `CIRCUIT_OPEN` while the tool is paused
   */
  acquire(tool: string, known: boolean): ToolPermit {
    const { toolBreaker } = this.#config;
    if (!toolBreaker || !known) return NO_BREAKER;
    const breaker = this.#breakers.get(tool) ?? this.#create(tool, toolBreaker);
    const permit: BreakerPermit | undefined = breaker.tryAcquire();
    if (!permit) throw this.#refusal(tool, breaker);
    const started = this.#clock.now();
    return {
      settle: (answer) =>
        breaker.settle(permit, answer === undefined ? 'ignored' : verdictOn(answer), started),
    };
  }

  /** Ends the timers and metrics of all of them. */
  destroy(): void {
    for (let oldest = this.#breakers.oldest; oldest; oldest = this.#breakers.oldest) {
      oldest.value.destroy();
      this.#breakers.delete(oldest.key);
    }
  }

  #create(
    tool: string,
    settings: Exclude<UpstreamConfig['toolBreaker'], false | undefined>,
  ): CircuitBreaker {
    if (this.#breakers.size >= MAX_BREAKERS) this.#breakers.oldest?.value.destroy();
    const name = `${this.#config.name}/${tool}`;
    const breaker = new CircuitBreaker(name, settings, { clock: this.#clock });
    this.#breakers.set(tool, breaker);
    return breaker;
  }

  /** Says that it is the tool: the server is well, and its other tools work. */
  #refusal(tool: string, breaker: CircuitBreaker): ResilienceError {
    const { retryAfter } = breaker.refuse().failure;
    const message = `calls of the tool "${tool}" are paused, because its last ones ended in an error that it reported itself; upstream "${this.#config.name}" works, and so do its other tools`;
    const suggestion = 'Use another tool in the meantime, or tell the user what this one reported.';
    const wait = retryAfter === undefined ? {} : { retryAfter };
    return new ResilienceError(createFailure('CIRCUIT_OPEN', { message, suggestion, ...wait }));
  }
}
