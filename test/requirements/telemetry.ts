import type { Requirement } from '../requirements.ts';

/** Start, export, shutdown, snapshot and the signal contract. */
export const requirements = {} as const satisfies Record<string, Requirement>;
