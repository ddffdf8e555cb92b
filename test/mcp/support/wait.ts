/** Resolves when `condition` holds, looking at every turn of the event loop; the test's own timeout bounds it. */
export const until = async (condition: () => boolean): Promise<void> => {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve));
};
