/**
 * @module
 * Docker Compose, in whichever form this machine has it: `docker compose` or `docker-compose`.
 */
import { spawn, spawnSync } from 'node:child_process';

const works = (command: string): boolean => {
  const [file = '', ...args] = command.split(' ');
  return spawnSync(file, [...args, 'version'], { stdio: 'ignore', timeout: 30_000 }).status === 0;
};

/** The command that is there already, such as `docker compose`. */
export const installedCompose = (): string | undefined =>
  ['docker compose', 'docker-compose'].find(works);

const run = (command: string, args: readonly string[]): Promise<boolean> =>
  new Promise((resolve) => {
    const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
    const child = spawn(command, args, { stdio: ['ignore', 'ignore', 'inherit'], env });
    child.once('error', () => resolve(false));
    child.once('exit', (code) => resolve(code === 0));
  });

/**
 * The command, installed from the packages of Debian first where it is missing and may be.
 *
 * @throws Error that says what to install
 */
export const composeCommand = async (): Promise<string> => {
  const found = installedCompose();
  if (found !== undefined) return found;
  if (process.getuid?.() === 0) {
    console.error('installing docker-compose, to check docker-compose.yml');
    const update = await run('apt-get', ['update', '-qq']);
    const packages = ['install', '-y', '-qq', '--no-install-recommends', 'docker-compose'];
    if (update && (await run('apt-get', packages)) && works('docker-compose')) {
      return 'docker-compose';
    }
  }
  throw new Error(
    'the stack test checks docker-compose.yml and needs Docker Compose (it needs no Docker): ' +
      'install the package docker-compose, or the plugin docker-compose-plugin',
  );
};
