import type { Requirement } from '../requirements.ts';

/** The failure taxonomy and its texts. */
export const requirements = {} as const satisfies Record<string, Requirement>;
