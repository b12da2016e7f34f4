import { realpath, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'

import { timestampFromMs } from '@bufbuild/protobuf/wkt'
import { TuttiError, limits } from '@tutti/core'
import type { AddRepositoryRequest, ListRepositoriesRequest } from '@tutti/proto'
import type { RepositoryRow } from '@tutti/store'

import { callerOf } from '../call-context.ts'
import type { CallContext, HandlerDeps } from '../handler.ts'

/** `tutti.v1.RepositoryService`: which folders of this machine requests may name (design §11.15). */
export function createRepositories({ catalog, mirrors, clock }: HandlerDeps) {
  return {
    async addRepository(request: AddRepositoryRequest, context: CallContext) {
      const { owner, local } = callerOf(context)
      if (!local) {
        throw new TuttiError(
          'permission_denied',
          'A folder can be registered only on the server itself, with its local key.',
        )
      }
      const location = await repositoryRoot(request.path)
      await refuseOtherName(owner, request.name, location, context.signal)
      const branch = await mirrors.defaultBranch(location, context.signal)
      const name = request.name || nameOf(location)
      const row = await catalog.repositories.add(owner, name, location, clock.now(), context.signal)
      return { repository: { ...toWire(row), defaultBranch: branch } }
    },

    async listRepositories(request: ListRepositoriesRequest, context: CallContext) {
      const { signal } = context
      const rows = await catalog.repositories.list(callerOf(context).owner, signal)
      const after = tokenName(request.pageToken)
      const rest = rows
        .toSorted((left, right) => (left.name < right.name ? -1 : 1))
        .filter(({ name }) => name > after)
      const page = rest.slice(0, request.pageSize || limits.defaultPageSize)
      const repositories = page.map(async (row) => {
        // A folder that is gone is still registered; it has no branch then.
        const defaultBranch = await mirrors.defaultBranch(row.location, signal).catch(() => '')
        return { ...toWire(row), defaultBranch }
      })
      const last = rest.length > page.length ? page.at(-1) : undefined
      return {
        repositories: await Promise.all(repositories),
        nextPageToken: last ? Buffer.from(last.name).toString('base64url') : '',
      }
    },
  }

  /** A name is given once: who asks for another, or for one that is taken, must not get something else without a word. */
  async function refuseOtherName(
    owner: string,
    name: string,
    location: string,
    signal: AbortSignal,
  ): Promise<void> {
    if (name === '') return
    const rows = await catalog.repositories.list(owner, signal)
    const known = rows.find((row) => row.location === location)
    if (known && known.name !== name) {
      throw new TuttiError(
        'already_exists',
        `${location} is registered as ${known.name} already. Use that name; it cannot be changed.`,
        { field: 'name', name: known.name },
      )
    }
    const rival = rows.find((row) => row.name === name)
    if (rival && rival.location !== location) {
      throw new TuttiError(
        'already_exists',
        `${name} is the name of ${rival.location} already. Give another name.`,
        { field: 'name', name },
      )
    }
  }
}

const toWire = ({ name, location, createdAt }: RepositoryRow) => ({
  name,
  path: location,
  createdAt: timestampFromMs(createdAt),
})

/** The folder that has the repository: a work tree's top, or a bare repository; symlinks resolved, so that one repository is one. */
async function repositoryRoot(path: string): Promise<string> {
  const real = await realpath(path).catch(() => undefined)
  for (
    let folder = real;
    folder !== undefined;
    folder = folder === dirname(folder) ? undefined : dirname(folder)
  ) {
    if (await exists(join(folder, '.git'))) return folder
    // The repository of a work tree is named by its work tree.
    if (basename(folder) !== '.git' && (await isBare(folder))) return folder
  }
  const what = real === undefined ? 'does not exist' : 'is no git repository and no folder of one'
  throw new TuttiError('invalid_argument', `path: ${JSON.stringify(path)} ${what}.`, { field: 'path' })
}

async function isBare(folder: string): Promise<boolean> {
  const parts = await Promise.all(['HEAD', 'objects', 'refs'].map((name) => exists(join(folder, name))))
  return !parts.includes(false)
}

const exists = (path: string) =>
  stat(path).then(
    () => true,
    () => false,
  )

const nameOf = (location: string): string =>
  basename(location)
    .replace(/\.git$/, '')
    .replaceAll(/[^A-Za-z0-9._-]+/g, '-')
    .replace(/^[^A-Za-z0-9]+/, '')
    .slice(0, 90) || 'repository'

function tokenName(token: string): string {
  const name = Buffer.from(token, 'base64url').toString()
  if (token === '' || /^[A-Za-z0-9][A-Za-z0-9._-]{0,120}$/.test(name)) return name
  throw new TuttiError('invalid_argument', 'page_token is not one of ours. Begin again without it.', {
    field: 'page_token',
  })
}
