import type { BlobStore } from '@tutti/blob-store'
import { TuttiError, type BlobId } from '@tutti/core'
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
  const lost: FileState[] = []
  for (const change of changes) {
    const file = changedFile(change)
    if (file && (file.hash === (thrown.detail['id'] as BlobId) || !(await blobs.has(file.hash, signal))))
      lost.push(file)
  }
  if (lost.length === 0) return undefined
  const named = lost.slice(0, shownFiles).map(({ path, hash }) => `${pathFields(path).path} (${hash})`)
  const more = lost.length > shownFiles ? `, and ${lost.length - shownFiles} more` : ''
  return new TuttiError(
    'data_loss',
    `The store has lost the content of files that the workspace needs: ${named.join(', ')}${more}. Put the blobs back, then send the agent a message.`,
    { files: lost.length, id: lost[0]!.hash },
    thrown,
  )
}
