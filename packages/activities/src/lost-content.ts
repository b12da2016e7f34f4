import type { BlobStore } from '@tutti/blob-store'
import { TuttiError } from '@tutti/core'
import { changedFile, type CapturedChange, type FileState } from '@tutti/workspace'
import { pathFields } from './workspace-tracker.ts'

const shownFiles = 20

/**
 * What a hydration that failed for its contents should have said: which files they are, and by which hash somebody can put them back.
 * Undefined when it failed for something else.
 */
export async function lostContent(
  thrown: unknown,
  changes: readonly CapturedChange[],
  blobs: BlobStore,
  signal: AbortSignal,
): Promise<TuttiError | undefined> {
  if (!(thrown instanceof TuttiError) || !['not_found', 'data_loss'].includes(thrown.code)) return undefined
  // The store names it when it reads, the sandbox when it writes, whoever sees first that it is damaged.
  const named = thrown.detail['id'] ?? thrown.detail['hash']
  const lost: FileState[] = []
  for (const change of changes) {
    const file = changedFile(change)
    // A store that does not answer hides no other failure.
    if (file && (file.hash === named || !(await blobs.has(file.hash, signal).catch(() => true))))
      lost.push(file)
  }
  if (lost.length === 0) return undefined
  const shown = lost.slice(0, shownFiles).map(({ path, hash }) => `${pathFields(path).path} (${hash})`)
  const more = lost.length > shownFiles ? `, and ${lost.length - shownFiles} more` : ''
  return new TuttiError(
    'data_loss',
    `The store has lost the content of files that the workspace needs: ${shown.join(', ')}${more}. Put the blobs back, then send the agent a message.`,
    { files: lost.length, id: lost[0]!.hash },
    thrown,
  )
}
