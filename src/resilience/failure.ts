/**
 * @module
 * The failure taxonomy: whatever was thrown or answered becomes a `Failure`, which says what
 * happened, whether waiting or repeating can help, and what the policies may conclude from it.
 */

import { createFailure } from './failure-codes.ts';
import { recogniseHttp } from './failure-http.ts';
import {
  recogniseDefect,
  recogniseJson,
  recogniseName,
  recogniseTimeout,
  recogniseZod,
} from './failure-language.ts';
import { type Classifier, type Delivery, type Failure, ResilienceError } from './failure-model.ts';
import { recogniseCode } from './failure-network.ts';
import { recogniseRpc, recogniseToolResult } from './failure-rpc.ts';
import { isA, isObject, namesOf, read, readText, sentence } from './inspect.ts';
import { completeFailure, reviveFailure } from './revive.ts';

export {
  createFailure,
  type FailureDetails,
  failureCodes,
  failureProfiles,
  failureToJSON,
} from './failure-codes.ts';
export {
  type Classifier,
  type Delivery,
  type Failure,
  type FailureCode,
  type FailureSeverity,
  type FailureSource,
  type FailureWeight,
  ResilienceError,
} from './failure-model.ts';
export { throttledResult } from './failure-rpc.ts';
export { FAILURE_KEY } from './revive.ts';

/**
 * How `classify` decides.
 *
 * @example
 * ```ts
 * import { classify, type ClassifyOptions, throttledResult } from 'mcp-resilience';
 * const options: ClassifyOptions = { classifier: throttledResult };
 * classify({ type: 'error', message: 'throttled, retry after 5 s' }, options).retryAfter; // 5
 * ```
 */
export interface ClassifyOptions {
  /** Asked first. One that throws, or returns what has no code, is passed over. */
  readonly classifier?: Classifier | undefined;
  /** Milliseconds since the epoch, for Retry-After dates. Default `Date.now`. */
  readonly wallTime?: (() => number) | undefined;
}

/** Errors looked at for one failure at most, over all causes and aggregates together. */
const MAX_LINKS = 32;

interface Walk {
  readonly wallTime: () => number;
  readonly seen: Set<object>;
}

/** The failure that an error of ours carries, here or in another copy of this package. */
const carried = (value: object): Failure | undefined => {
  const failure = read(value, 'failure');
  if (!isObject(failure)) return undefined;
  return isA(value, ResilienceError) ? (failure as Failure) : reviveFailure(failure);
};

/** What one link of the chain says for certain. */
const recognise = (value: object, wallTime: () => number): Failure | undefined =>
  carried(value) ??
  reviveFailure(value) ??
  recogniseToolResult(value) ??
  recogniseZod(value) ??
  recogniseHttp(value, wallTime) ??
  recogniseRpc(value) ??
  recogniseCode(value) ??
  recogniseTimeout(value) ??
  recogniseJson(value);

/** The less telling first. What is not listed tells more than all of them. */
const DULL: readonly string[] = [
  'UNKNOWN_ERROR',
  'INTERNAL_ERROR',
  'CANCELLED',
  'NETWORK_ERROR',
  'HOST_UNREACHABLE',
  'DNS_FAILURE',
  'CONNECT_TIMEOUT',
  'CONNECTION_REFUSED',
];

const DELIVERIES: readonly Delivery[] = ['not_sent', 'refused', 'answered', 'lost'];

const telling = (failure: Failure): number => {
  const rank = DULL.indexOf(failure.code);
  return rank < 0 ? DULL.length : rank;
};

/**
 * The most telling of several failures, as happy eyeballs (RFC 8305) and `Promise.any` gather
 * them. It got as far as the one of them that got farthest: only if none was sent is it safe
 * to repeat.
 */
const recogniseAggregate = (value: object, walk: Walk): Failure | undefined => {
  const errors = read(value, 'errors');
  if (!Array.isArray(errors) || errors.length === 0) return undefined;
  if (!isA(value, AggregateError) && !namesOf(value).includes('AggregateError')) return undefined;
  let best: Failure | undefined;
  let farthest = 0;
  for (const inner of errors.slice(0, MAX_LINKS)) {
    if (isObject(inner) && walk.seen.has(inner)) continue;
    const failure = follow(inner, walk);
    if (best === undefined || telling(failure) > telling(best)) best = failure;
    farthest = Math.max(farthest, DELIVERIES.indexOf(failure.delivery));
  }
  // If nothing in it is known, its own code, name or cause may say more.
  if (best === undefined || best.code === 'UNKNOWN_ERROR') return undefined;
  return { ...best, delivery: DELIVERIES[farthest] ?? best.delivery, cause: value };
};

/** Nobody knows what it is. */
const unknown = (value: unknown): Failure => {
  if (typeof value === 'string')
    return createFailure('UNKNOWN_ERROR', {
      message: sentence('The call failed', value),
      cause: value,
    });
  const message = readText(value, 'message')?.trim() ?? '';
  const type = value === null ? 'null' : typeof value;
  const lead = isObject(value) ? 'The call failed' : `The call failed with a thrown ${type}`;
  return createFailure('UNKNOWN_ERROR', { message: sentence(lead, message), cause: value });
};

/**
 * Goes from an error to its causes. The first certain answer counts, from the outside in;
 * then what a name suggests (an AbortError may only pass on a timeout that is its cause),
 * then a programming error anywhere in the chain.
 */
const follow = (start: unknown, walk: Walk): Failure => {
  const links: object[] = [];
  for (let link = start; isObject(link) && !walk.seen.has(link); ) {
    if (walk.seen.size >= MAX_LINKS) break;
    walk.seen.add(link);
    links.push(link);
    const found = recogniseAggregate(link, walk) ?? recognise(link, walk.wallTime);
    if (found !== undefined) return found;
    // ErrorEvent, SuppressedError and JSON-RPC responses hold what happened in `error`.
    link = read(link, 'cause') ?? read(link, 'error');
  }
  return first(links, recogniseName) ?? first(links, recogniseDefect) ?? unknown(start);
};

const first = (
  links: readonly object[],
  recogniser: (link: object) => Failure | undefined,
): Failure | undefined => {
  for (const link of links) {
    const failure = recogniser(link);
    if (failure !== undefined) return failure;
  }
  return undefined;
};

const own = (error: unknown, classifier: Classifier | undefined): Failure | undefined => {
  if (classifier === undefined) return undefined;
  try {
    return completeFailure(classifier(error));
  } catch {
    return undefined;
  }
};

/**
 * The failure that `error` is, whatever it is: something thrown, a `Response`, a JSON-RPC
 * error or a tool result with `isError`. Never throws. The error itself is kept as `cause`.
 *
 * `SyntaxError`s of `JSON.parse` count as a broken answer of the upstream
 * (`UPSTREAM_INVALID_RESPONSE`), since that is what a protected call parses as a rule; other
 * syntax errors, TypeErrors, RangeErrors and failed assertions are defects of our own
 * (`INTERNAL_ERROR`), which open no breaker and are not repeated. A `TypeError` of `fetch`
 * is neither: it is what its cause says.
 *
 * Check the caller's signal first: an abort of the caller is final, whatever error it
 * surfaces as.
 *
 * @example
 * ```ts
 * import { classify } from 'mcp-resilience';
 * try {
 *   await fetch('https://api.example/v1/weather');
 * } catch (error) {
 *   const { code, retryable } = classify(error); // 'DNS_FAILURE', true
 * }
 * ```
 */
export const classify = (error: unknown, options: ClassifyOptions = {}): Failure => {
  try {
    const wallTime = options.wallTime ?? Date.now;
    return own(error, options.classifier) ?? follow(error, { wallTime, seen: new Set() });
  } catch {
    // Reached by a hostile value only; even then the caller is told something.
    return createFailure('UNKNOWN_ERROR', { cause: error });
  }
};
