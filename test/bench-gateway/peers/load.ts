/**
 * @module
 * Loads packages from the folder that the benchmark installed its peers into (`PEERS`).
 */
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const require = createRequire(join(process.env.PEERS ?? '', 'package.json'));

/** The exports of a package there. The types are what the caller says. */
export const load = async <T>(name: string): Promise<T> =>
  (await import(pathToFileURL(require.resolve(name)).href)) as T;

/** `--front http|stdio`, `--port N`, and `--url URL` or the words of a command after `--`. */
export const readArguments = () => {
  const words = process.argv.slice(2);
  const end = words.includes('--') ? words.indexOf('--') : words.length;
  const value = (name: string) => words.slice(0, end)[words.indexOf(name) + 1] ?? '';
  const [command = '', ...args] = words.slice(end + 1);
  return {
    front: value('--front'),
    port: Number(value('--port')),
    url: command === '' ? value('--url') : undefined,
    command,
    args,
  };
};
