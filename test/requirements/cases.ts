import type { Requirement } from '../requirements.ts';

/** Public reports that no other area lists, and the comparison with other libraries. */
export const requirements = {
  L31: {
    promise: 'the wait before the next try grows until a recovery has proved useful, up to its cap',
    source: 'modelcontextprotocol/python-sdk#2393, #3356',
  },
  'comparison.current': {
    promise:
      'docs/comparison.md says what a fresh run says, and this library passes every case of it',
    source: 'issue 3, Cases',
  },
} as const satisfies Record<string, Requirement>;
