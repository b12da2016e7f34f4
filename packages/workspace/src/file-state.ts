import type { BlobId } from '@tutti/core'
import { isModulesPath } from './modules-path.ts'

/** The state of one file or link, as the scan found it or as the log has it. */
export interface FileState {
  /** Raw path bytes below the workspace, `/` between components. */
  readonly path: Uint8Array
  readonly fileType: 'file' | 'symlink'
  readonly mode: '100644' | '100755' | '120000'
  /** Bytes of the content; for a link, of its target. */
  readonly size: number
  readonly hash: BlobId
  /** git ignores it: it is in no commit. */
  readonly ignored?: boolean
}

/** A folder with nothing in it that is captured. One that holds something has no entry: it is there with what it holds. */
export interface EmptyFolderState {
  readonly path: Uint8Array
  readonly fileType: 'dir'
  readonly mode: '040000'
}

export type PathState = FileState | EmptyFolderState

/** What a path is now, or that it is gone. State-based: applied twice is applied once (design §11.3). */
export type CapturedChange =
  | { readonly action: 'created' | 'modified'; readonly state: PathState; readonly base?: BlobId }
  | {
      readonly action: 'deleted'
      readonly path: Uint8Array
      readonly base?: BlobId
      /** git ignores it by now and it is not kept any more: it may well be there. */
      readonly ignored?: true
    }

export const changePath = (change: CapturedChange): Uint8Array =>
  change.action === 'deleted' ? change.path : change.state.path

/** What of a change has content; undefined for what is gone and for a folder. */
export const changedFile = (change: CapturedChange): FileState | undefined =>
  change.action === 'deleted' || change.state.fileType === 'dir' ? undefined : change.state

/** Whether a change says that a folder with nothing in it is there. */
export const isEmptyFolder = (change: CapturedChange): boolean =>
  change.action !== 'deleted' && change.state.fileType === 'dir'

/** Whether no commit of ours has what is there: an empty folder, what git ignores, or a link that git would not check out. It is kept beside checkpoints. */
export const isInNoCommit = (change: CapturedChange): boolean =>
  change.action !== 'deleted' &&
  (change.state.fileType === 'dir' || change.state.ignored === true || isModulesLink(change.state))

const isModulesLink = ({ path, fileType }: FileState): boolean =>
  fileType === 'symlink' && isModulesPath(path)
