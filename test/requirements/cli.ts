import type { Requirement } from '../requirements.ts';

/** The command, its configuration and the package. */
export const requirements = {} as const satisfies Record<string, Requirement>;
