/**
 * Works on each item, so many at once, in their order; the first failure is told when none is under way any more.
 *
 * @returns what came of each
 */
export async function inParallel<T, R>(
  items: readonly T[],
  atOnce: number,
  work: (item: T) => Promise<R>,
): Promise<R[]> {
  const results: R[] = []
  const waiting = items.entries()
  const next = async () => {
    for (const [at, item] of waiting) results[at] = await work(item)
  }
  const workers = Array.from({ length: Math.min(atOnce, items.length) }, next)
  for (const result of await Promise.allSettled(workers))
    if (result.status === 'rejected') throw result.reason
  return results
}
