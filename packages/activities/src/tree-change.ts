import type { CapturedChange } from '@tutti/agent-server'
import type { BlobStore } from '@tutti/blob-store'
import type { TreeChange } from '@tutti/git'
import { changedFile, changePath, isInNoCommit } from '@tutti/workspace'

/** What a change is to a commit; its content is read when it is needed. */
export function treeChange(change: CapturedChange, blobs: BlobStore, signal: AbortSignal): TreeChange {
  const file = changedFile(change)
  // To a commit, what was at the path of an empty folder or of an ignored file is gone.
  if (!file || isInNoCommit(change)) return { path: changePath(change), deleted: true }
  const { path, mode, size, hash } = file
  return { path, mode, size, content: () => blobs.stream(hash, signal) }
}
