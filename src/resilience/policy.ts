/**
 * @module
 * The settings of one dependency.
 */

/** Most calls in a period, per key. Token bucket: refilled by elapsed time, not by a timer. */
export interface RateLimitSettings {
  /** Calls allowed per `interval`, 1 to 1 000 000. */
  readonly limit: number;
  /** Milliseconds over which `limit` calls are allowed. Default 1 000. */
  readonly interval?: number;
  /** Calls allowed at once after a quiet time. Default `limit`. */
  readonly burst?: number;
  /** Longest wait for a turn, in milliseconds; 0 refuses at once. Default 0. */
  readonly maxWait?: number;
  /** Keys kept apart at most; the least recently used one is forgotten. Default 10 000. */
  readonly maxKeys?: number;
}

/** Most calls at one time. */
export interface BulkheadSettings {
  /** Calls that may run at the same time. */
  readonly limit: number;
  /** Calls that may wait for a place, first in first out. Default 0. */
  readonly queue?: number;
  /** Longest wait in the queue, in milliseconds. Default: until the deadline. */
  readonly maxWait?: number;
}

/** Answers kept for a while. */
export interface CacheSettings {
  /** Milliseconds for which an answer is fresh. */
  readonly ttl: number;
  /** Milliseconds beyond `ttl` in which the old answer is served while a new one is fetched. Default 0. */
  readonly staleWhileRevalidate?: number;
  /** Milliseconds beyond `ttl` in which the old answer is served when the call fails. Default 0. */
  readonly staleIfError?: number;
  /** Entries kept at most; the least recently used one goes first. Default 1 000. */
  readonly maxEntries?: number;
}

/** Who waits for the answer: under pressure background work is shed first. */
export type Priority = 'interactive' | 'background';
