/**
 * @module
 * docker-compose.yml, as far as tests ask it: what is started, how, and on which ports.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';

export const root = join(import.meta.dirname, '..', '..');

/** The text of a file of the repository. */
export const fileOf = (path: string): string => readFileSync(join(root, path), 'utf8');

/** A service, as far as tests look at it. */
export interface Service {
  readonly image?: string;
  readonly build?: string;
  readonly command?: readonly string[];
  readonly entrypoint?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly ports?: readonly string[];
  readonly volumes?: readonly string[];
  readonly profiles?: readonly string[];
  readonly mem_limit?: string;
  readonly read_only?: boolean;
  readonly tmpfs?: readonly string[];
  readonly cap_drop?: readonly string[];
  readonly security_opt?: readonly string[];
  readonly restart?: string;
  readonly healthcheck?: { readonly test: readonly string[] };
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>;
}

interface Compose {
  readonly services: Readonly<Record<string, Service>>;
  readonly volumes: Readonly<Record<string, unknown>>;
}

export const compose = (): Compose => parse(fileOf('docker-compose.yml'), { merge: true });

/** @throws Error when docker-compose.yml has no such service */
export const service = (name: string): Service => {
  const found = compose().services[name];
  if (found === undefined) throw new Error(`docker-compose.yml has no service ${name}`);
  return found;
};
