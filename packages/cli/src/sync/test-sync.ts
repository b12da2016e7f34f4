import { noCrashPoints } from '@tutti/core'
import { createFolderSync, type FolderSync, type FolderSyncDeps } from './folder-sync.ts'
import { createLocalTree } from './local-tree.ts'
import { createLocalWriter } from './local-writer.ts'

/** For tests: the sync of a folder with the agent `bc`. */
export function createTestSync(
  folder: string,
  deps: Pick<FolderSyncDeps, 'client' | 'state' | 'note'> & Partial<FolderSyncDeps>,
): FolderSync {
  const tree = createLocalTree(folder, deps.ignoresCase)
  return createFolderSync({
    bcId: 'bc',
    tree,
    writer: createLocalWriter(tree, deps.state.temporaries),
    ignoresCase: false,
    allowDeletions: false,
    crashPoint: noCrashPoints,
    now: () => 0,
    signal: new AbortController().signal,
    ...deps,
  })
}
