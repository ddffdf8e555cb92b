import type { Requirement } from '../requirements.ts';

/** Faults that are injected, and everything that keeps them from being left behind. */
export const requirements = {} as const satisfies Record<string, Requirement>;
