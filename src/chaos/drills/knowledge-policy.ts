/**
 * @module
 * The policies of the protected server of the drill `slow-shard`: ordinary ones, with times that
 * fit a query of 20 ms.
 */
import type { PolicySettings } from '../../resilience/policy.ts';

/** Of both tools. Milliseconds. */
export const KNOWLEDGE_POLICY = {
  /** May take up 20 of the 50 connections, and gives up after 20 times the usual time. */
  search_knowledge: {
    deadline: 2_000,
    timeout: 400,
    bulkhead: { limit: 20, queue: 10, maxWait: 200 },
    breaker: { threshold: 5, openDuration: 1_500, scope: 'attempt' },
    retry: { maxRetries: 1, baseDelay: 50 },
  },
  get_document: {
    deadline: 2_000,
    timeout: 1_000,
    bulkhead: { limit: 20, queue: 10, maxWait: 200 },
  },
} as const satisfies Record<string, PolicySettings>;
