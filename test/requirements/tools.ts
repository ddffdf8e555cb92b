import type { Requirement } from '../requirements.ts';

/** The tools of the reference server. */
export const requirements = {} as const satisfies Record<string, Requirement>;
