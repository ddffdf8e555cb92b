/**
 * A promise that rejects in the next microtask, when its caller has had time to take it up. A
 * promise that is born rejected is first reported to Node as unhandled and then as handled
 * after all; that costs more than everything else a refusal does.
 */
export const rejected = (error: unknown): Promise<never> =>
  new Promise((_, reject) => {
    queueMicrotask(() => reject(error));
  });
