import type { BlobStore } from '@tutti/blob-store'
import { TuttiError, type BlobId } from '@tutti/core'
import { changedFile, type CapturedChange } from '@tutti/workspace'
import { isLost as isAboutContent, pathFields } from '@tutti/workspace/log'

/** What a workspace is made of beyond commits of the mirror. */
export interface WorkspaceContent {
  readonly changes: readonly CapturedChange[]
  /** Of the agent's own repository. */
  readonly packs: readonly BlobId[]
}

interface NamedContent {
  readonly name: string
  readonly hash: BlobId
}

const shownFiles = 20

/**
 * What a hydration that failed for its contents should have said: which files they are, and by which hash somebody can put them back.
 * `unavailable` when the store has all of it whole, so that another try may do. Undefined when it failed for something else.
 */
export async function lostContent(
  thrown: unknown,
  { changes, packs }: WorkspaceContent,
  blobs: BlobStore,
  signal: AbortSignal,
): Promise<TuttiError | undefined> {
  if (!isAboutContent(thrown)) return undefined
  const lost: NamedContent[] = []
  let damaged: NamedContent | undefined
  for (const content of contents(changes, packs)) {
    if (content.hash === namedBy(thrown)) damaged = content
    if (await isLost(content.hash, thrown, blobs, signal)) lost.push(content)
  }
  if (lost.length === 0) return damaged && onItsWay(damaged, thrown)
  const shown = lost.slice(0, shownFiles).map(({ name, hash }) => `${name} (${hash})`)
  const more = lost.length > shownFiles ? `, and ${lost.length - shownFiles} more` : ''
  return new TuttiError(
    'data_loss',
    `The store has lost the content of files that the workspace needs: ${shown.join(', ')}${more}. Put the blobs back, then send the agent a message.`,
    { files: lost.length, id: lost[0]!.hash },
    thrown,
  )
}

/** The changes whose contents the store has lost, when something has failed for that. */
export async function lostChanges(
  thrown: unknown,
  changes: readonly CapturedChange[],
  blobs: BlobStore,
  signal: AbortSignal,
): Promise<readonly CapturedChange[]> {
  if (!isAboutContent(thrown)) return []
  const lost: CapturedChange[] = []
  for (const change of changes) {
    const file = changedFile(change)
    if (file && (await isLost(file.hash, thrown, blobs, signal))) lost.push(change)
  }
  return lost
}

/** The store names it when it reads, the sandbox when it writes, whoever sees first that it is damaged. */
const namedBy = ({ detail }: TuttiError): unknown => detail['id'] ?? detail['hash']

function isLost(hash: BlobId, thrown: TuttiError, blobs: BlobStore, signal: AbortSignal): Promise<boolean> {
  const found = hash === namedBy(thrown) ? isWhole(blobs, hash, signal) : blobs.has(hash, signal)
  // A store that does not answer hides no other failure.
  return found.then(
    (isThere) => !isThere,
    () => false,
  )
}

/** The store has it as it was stored. */
async function isWhole(blobs: BlobStore, hash: BlobId, signal: AbortSignal): Promise<boolean> {
  try {
    for await (const _ of blobs.stream(hash, signal));
    return true
  } catch (error) {
    if (error instanceof TuttiError && ['not_found', 'data_loss'].includes(error.code)) return false
    throw error
  }
}

const onItsWay = ({ name, hash }: NamedContent, thrown: TuttiError) =>
  new TuttiError(
    'unavailable',
    `The content of ${name} (${hash}) was damaged on its way to the sandbox; the store has it whole. Another sandbox may get it.`,
    { id: hash },
    thrown,
  )

function* contents(changes: readonly CapturedChange[], packs: readonly BlobId[]): Generator<NamedContent> {
  for (const change of changes) {
    const file = changedFile(change)
    if (file) yield { name: pathFields(file.path).path, hash: file.hash }
  }
  for (const hash of packs) yield { name: 'a pack of the agent’s commits', hash }
}
