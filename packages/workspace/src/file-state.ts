import type { BlobId } from '@tutti/core'

/** The state of one path, as the scan found it or as the log has it. */
export interface FileState {
  /** Raw path bytes below the workspace, `/` between components. */
  readonly path: Uint8Array
  readonly fileType: 'file' | 'symlink'
  readonly mode: '100644' | '100755' | '120000'
  /** Bytes of the content; for a link, of its target. */
  readonly size: number
  readonly hash: BlobId
}

/** What a path is now, or that it is gone. State-based: applied twice is applied once (design §11.3). */
export type CapturedChange =
  | { readonly action: 'created' | 'modified'; readonly state: FileState; readonly base?: BlobId }
  | { readonly action: 'deleted'; readonly path: Uint8Array; readonly base?: BlobId }
