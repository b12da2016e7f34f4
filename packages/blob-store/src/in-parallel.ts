/** Works on each item, so many at once, in their order; the first failure is told when none is under way any more. */
export async function inParallel<T>(
  items: readonly T[],
  atOnce: number,
  work: (item: T, at: number) => Promise<void>,
): Promise<void> {
  const waiting = items.entries()
  const next = async () => {
    for (const [at, item] of waiting) await work(item, at)
  }
  const workers = Array.from({ length: Math.min(atOnce, items.length) }, next)
  for (const result of await Promise.allSettled(workers))
    if (result.status === 'rejected') throw result.reason
}
