import type { Requirement } from '../requirements.ts';

/** Drills: what is run, and how the verdict is found. */
export const requirements = {} as const satisfies Record<string, Requirement>;
