import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { create } from '@bufbuild/protobuf'
import type { TuttiClient } from '@tutti/client'
import { TuttiError } from '@tutti/core'
import { RepositorySourceSchema, type RepositorySource } from '@tutti/proto'

const url = /^((https?|ssh):\/\/|[A-Za-z0-9_][A-Za-z0-9._-]*@[A-Za-z0-9][A-Za-z0-9.-]*:)/

/** The folder that `--repo` names; undefined for a URL or a registered name. */
export function localPath(given: string, cwd: string): string | undefined {
  const path = resolve(cwd, given)
  return !url.test(given) && existsSync(path) ? path : undefined
}

/**
 * What `--repo` means: a URL as it stands; a path, which is registered with the server first (design §11.15); else the name of a
 * repository that is registered already.
 *
 * @throws TuttiError `invalid_argument` when it is none of these; `not_found` from the server.
 */
export async function repositorySource(
  client: TuttiClient,
  given: string,
  ref: string,
  cwd: string,
  signal: AbortSignal,
): Promise<RepositorySource> {
  if (url.test(given)) return create(RepositorySourceSchema, { location: { case: 'url', value: given }, ref })
  const path = localPath(given, cwd)
  if (path !== undefined) {
    const { repository } = await client.repositories.addRepository({ path }, { signal })
    return create(RepositorySourceSchema, { location: { case: 'registered', value: repository!.name }, ref })
  }
  if (/^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/.test(given)) {
    return create(RepositorySourceSchema, { location: { case: 'registered', value: given }, ref })
  }
  throw new TuttiError(
    'invalid_argument',
    `${resolve(cwd, given)} does not exist. Give the path of a git repository, its URL, or a registered name.`,
    {
      field: '--repo',
    },
  )
}
