/**
 * @module
 * Names that upstreams have given to their tools and prompts: the ones that telemetry may record.
 */
import type { KnownNames } from '../mcp/operation.ts';
import { AnsweredNames } from './answered-names.ts';
import type { NameTable } from './naming.ts';

/** Names remembered at most, of each kind: a metric must not grow with what a peer invents. */
const MAX_NAMES = 20_000;

/** Names of all client sessions of a gateway. */
export interface NameRegister {
  /** For the doors; alive. */
  readonly known: KnownNames;
  /** Takes what a catalogue shows, and tells of names that clients would not expect. */
  note(kind: 'tools' | 'prompts', table: NameTable): void;
  /** Takes a name of the gateway's own. */
  add(kind: 'tools' | 'prompts', name: string): void;
}

const WHY = {
  collision: 'another server has that name too',
  characters: 'clients take only A-Z, a-z, 0-9, "_", "." and "-"',
  length: 'clients take at most 64 characters',
} as const;

/** @param say tells a person that a name had to change; once for each */
export const createNameRegister = (say: (line: string) => void): NameRegister => {
  const names = { tools: new Set<string>(), prompts: new Set<string>() };
  const told = new Set<string>();
  const answered = new AnsweredNames(names);
  const add = (kind: 'tools' | 'prompts', name: string): void => {
    if (names[kind].size < MAX_NAMES) names[kind].add(name);
  };
  return {
    known: { ...names, answered: (kind, name) => answered.add(kind, name) },
    add,
    note: (kind, table) => {
      if (table.entries.length > 0) answered.listed(kind);
      for (const { shown, upstream, name, reason } of table.entries) {
        add(kind, shown);
        if (reason === undefined || reason === 'asked') continue;
        const key = JSON.stringify([kind, upstream, name, shown]);
        if (told.has(key) || told.size >= MAX_NAMES) continue;
        told.add(key);
        const what = kind === 'tools' ? 'tool' : 'prompt';
        say(
          `warning: the ${what} ${JSON.stringify(name)} of ${upstream} is shown as ${shown}: ${WHY[reason]}`,
        );
      }
    },
  };
};
