import type { Requirement } from '../requirements.ts';

/** The gateway: links, upstreams, catalogue, relay and its commands. */
export const requirements = {} as const satisfies Record<string, Requirement>;
