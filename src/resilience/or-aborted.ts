/**
 * What `running` comes to, unless the signal aborts first: then its reason, at once, however long
 * the work goes on. Leaves no listener behind, and no rejection of `running` unhandled.
 *
 * @param onAbort called after the caller has been told
 */
export const orAborted = <T>(
  running: Promise<T>,
  signal: AbortSignal,
  onAbort?: () => void,
): Promise<T> =>
  new Promise<T>((resolve, reject) => {
    const leave = () => {
      reject(signal.reason);
      onAbort?.();
    };
    // A signal that aborted while the work began tells nobody any more.
    if (signal.aborted) leave();
    else signal.addEventListener('abort', leave, { once: true });
    const stop = () => signal.removeEventListener('abort', leave);
    running.then(
      (value) => {
        stop();
        resolve(value);
      },
      (error: unknown) => {
        stop();
        reject(error);
      },
    );
  });
