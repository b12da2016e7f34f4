import { basename } from 'node:path'
import { TuttiError } from '@tutti/core'
import type { Mirrors, TreeFile } from '@tutti/git'
import { pathKey } from '@tutti/workspace'
import { isLost, pathFields } from '@tutti/workspace/log'

export interface MendedFilesRequest {
  readonly location: string
  readonly commit: string
  /** The commit of the source that it began from: what it has beyond that is ours to bring back. */
  readonly base: string
  /** Of the others nothing is read: whether they are whole does not matter. */
  readonly only: (path: Uint8Array) => boolean
}

/** In bytes: up to here a content is read to its end before it is given. */
const wholeBytes = 4 << 20

/**
 * Files of a commit. Where the mirror's are damaged they are brought back from the archive, as for a recovery, and the reading goes on.
 *
 * @throws TuttiError `data_loss` when the archive does not have it either; `aborted` when it was brought back and a part of a large file
 *   had been given before, as of a damaged object git gives wrong bytes first. Both with what to do.
 */
export async function* mendedFiles(
  mirrors: Mirrors,
  { location, commit, base, only }: MendedFilesRequest,
  signal: AbortSignal,
): AsyncGenerator<TreeFile> {
  let isMended = false
  const mend = async (thrown: unknown) => {
    if (!isLost(thrown)) throw thrown
    // It brings back all of a commit at once, and what is the source's it leaves alone.
    if (isMended || commit === base) throw damagedSource(mirror.path, commit, thrown)
    await mirrors.repair(location, { commit, base }, signal).catch((error: unknown) => {
      throw isLost(error) ? unmendable(commit, error) : error
    })
    isMended = true
  }
  const mirror = await mirrors.restore(location, commit, signal)
  const given = new Set<string>()

  for (;;) {
    try {
      const files = mirror.files(commit, signal, (path) => only(path) && !given.has(pathKey(path)))
      for await (const file of files) {
        const content = file.size > wholeBytes ? orAborted(file) : await whole(file)
        given.add(pathKey(file.path))
        yield { ...file, content }
      }
      return
    } catch (thrown) {
      await mend(thrown)
    }
  }

  async function* orAborted({ path, content }: TreeFile): AsyncGenerator<Uint8Array> {
    try {
      yield* content
    } catch (thrown) {
      await mend(thrown)
      const message = `The mirror's content of ${pathFields(path).path} was damaged, and was brought back from the archive. Do the same again.`
      throw new TuttiError('aborted', message, { commit }, thrown)
    }
  }
}

async function whole({ content }: TreeFile): Promise<AsyncIterable<Uint8Array>> {
  const chunks = await Array.fromAsync(content)
  return (async function* () {
    yield* chunks
  })()
}

function unmendable(commit: string, cause: TuttiError): TuttiError {
  const packs = `commits/${commit.slice(0, 2)}/${commit}.`
  const message = `${cause.message} "tutti agent recover" makes a sandbox of the checkpoint before it, as far as the log still has what changed since; or bring back the objects of the archive that begin with ${packs}`
  return new TuttiError('data_loss', message, { commit }, cause)
}

function damagedSource(mirror: string, commit: string, cause: TuttiError): TuttiError {
  const name = basename(mirror, '.git')
  const message = `${cause.message} It came from the repository itself. Stop Tutti and remove ${name}.git and ${name}.source.git from the folder of mirrors: they are made again from the repository and the archive.`
  return new TuttiError('data_loss', message, { commit }, cause)
}
