/**
 * @module
 * The files as they stand in the repository, judged by the programs that read them.
 */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'vitest';
import { parse } from 'yaml';
import { root } from '../compose.ts';
import { installedCompose } from '../compose-command.ts';
import { program } from '../programs.ts';

const execute = promisify(execFile);

/** Runs a program in otel/; what it says when it fails is the error. */
const run = async (command: string, args: readonly string[], cwd = join(root, 'otel')) => {
  try {
    return (await execute(command, args, { cwd })).stdout;
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string };
    throw new Error(`${command} ${args.join(' ')}:\n${stdout}${stderr}`);
  }
};

/** Configuration and rules, and the tests of the rules. */
export const validFiles = async (): Promise<void> => {
  const promtool = await program('promtool');
  await run(promtool, ['check', 'config', 'prometheus.yaml']);
  await run(promtool, ['check', 'rules', '--lint=all', '--lint-fatal', 'rules.yaml']);
  await run(promtool, ['test', 'rules', 'rules.test.yaml']);
  await run(await program('otelcol'), ['validate', '--config=collector.yaml']);
};

interface Resolved {
  readonly services: Readonly<Record<string, { readonly ports?: readonly unknown[] }>>;
}

/** Docker Compose understands the file, and publishes no port beyond this machine. */
export const validCompose = async (): Promise<void> => {
  const compose = process.env.COMPOSE_COMMAND ?? installedCompose();
  expect(compose, 'Docker Compose').toBeDefined();
  const [command = '', ...first] = (compose ?? '').split(' ');
  const { services } = parse(await run(command, [...first, 'config'], root)) as Resolved;
  expect(Object.keys(services).sort()).toEqual([
    'grafana',
    'jaeger',
    'otel-collector',
    'prometheus',
    'server',
    'volumes',
  ]);
  // `127.0.0.1:3000:3000`, or the same as an object with host_ip.
  const ports = Object.values(services).flatMap(({ ports = [] }) =>
    ports.map((port) => JSON.stringify(port)),
  );
  expect(ports).toHaveLength(6);
  expect(ports.filter((port) => !port.includes('127.0.0.1'))).toEqual([]);
};
