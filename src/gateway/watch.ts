/**
 * @module
 * Watches a file for changes. Editors write it in pieces, or put another one in its place, so
 * that it is its folder that is watched, and a change counts once it has been quiet for a while.
 */
import { type FSWatcher, statSync, watch } from 'node:fs';
import { basename, dirname, resolve } from 'node:path';
import { type Clock, systemClock, type Timer } from '../resilience/clock.ts';

/** Settings of `watchFile`. */
export interface WatchOptions {
  /** Milliseconds of quiet after which a change is told. Default 200. */
  readonly quiet?: number;
  readonly clock?: Clock;
  /** Told when the folder can no longer be watched. */
  readonly onError?: (error: Error) => void;
}

/** What tells that a file is another one than before; undefined while there is none. */
const stampOf = (file: string): string | undefined => {
  try {
    const { mtimeMs, size, ino } = statSync(file);
    return `${mtimeMs} ${size} ${ino}`;
  } catch {
    return undefined;
  }
};

/**
 * Calls `onChange` after the file has changed; not when it is deleted, since that is how many
 * editors begin to write it. Does not keep the process alive.
 *
 * @returns how to stop
 * @throws Error of `fs.watch` when the folder cannot be watched
 */
export const watchFile = (
  file: string,
  onChange: () => void,
  options: WatchOptions = {},
): (() => void) => {
  const { quiet = 200, clock = systemClock, onError = () => {} } = options;
  const path = resolve(file);
  let seen = stampOf(path);
  let timer: Timer | undefined;

  const settle = (): void => {
    timer = undefined;
    const stamp = stampOf(path);
    if (stamp === undefined || stamp === seen) return;
    seen = stamp;
    onChange();
  };
  const watcher: FSWatcher = watch(dirname(path), { persistent: false }, (_event, name) => {
    // Some platforms do not say which file of the folder it is.
    if (name !== null && name !== basename(path)) return;
    timer?.cancel();
    timer = clock.setTimer(quiet, settle);
  });
  watcher.on('error', onError);
  return () => {
    timer?.cancel();
    watcher.close();
  };
};
