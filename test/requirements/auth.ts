import type { Requirement } from '../requirements.ts';

/** Who may call through the HTTP door. */
export const requirements = {} as const satisfies Record<string, Requirement>;
