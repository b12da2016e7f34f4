import { setTimeout } from 'node:timers/promises'

/** More than so many files, or more than half of them, are gone at once in no ordinary way. */
const maxGone = 1000
/** Until what is gone is looked for once more, in milliseconds: a disk may come back. */
const againMs = 2000

type Files = { has(key: string): boolean }

/**
 * The last thing that an agent server says: very many files are gone, and nothing of the agent's has run that could have removed
 * them. So the place is broken, and what it has is not the agent's work: another sandbox gets what was captured.
 */
export class VanishedFiles extends Error {}

/**
 * @param known the files that were there
 * @param look walks once more
 * @returns what the last look has found
 * @throws VanishedFiles when they stay away
 */
export async function expectFiles<T extends { readonly files: Files }>(
  known: readonly string[],
  first: T,
  look: () => Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  if (tooManyGone(known, first.files) === 0) return first
  await setTimeout(againMs, undefined, { signal })
  const second = await look()
  const gone = tooManyGone(known, second.files)
  if (gone === 0) return second
  throw new VanishedFiles(
    `${gone} of ${known.length} files are gone from the workspace, and nothing ran in it`,
  )
}

/** How many are gone, where that is too many; else 0. */
function tooManyGone(known: readonly string[], files: Files): number {
  const gone = known.filter((key) => !files.has(key)).length
  return gone > maxGone || gone * 2 > known.length ? gone : 0
}
