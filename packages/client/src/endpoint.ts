import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { TuttiError } from '@tutti/core'
import { isRunning } from '@tutti/processes'

/** `endpoint.json` of a data folder: where its server answers. Written when it is ready, removed at a clean stop. */
export interface Endpoint {
  /** `http://127.0.0.1:PORT`. */
  readonly address: string
  readonly pid: number
  /** ISO 8601. */
  readonly startedAt: string
  /** Absolute path of the local key. */
  readonly keyFile: string
}

export interface FoundEndpoint extends Endpoint {
  readonly key: string
}

export const endpointFile = (dataDir: string): string => join(dataDir, 'endpoint.json')

/**
 * Finds the server of a data folder. Undefined when there is no endpoint file or its process is gone (killed before it could
 * remove the file).
 *
 * @throws TuttiError `permission_denied` when other users could read or write the key; `failed_precondition` for a file that is
 *   not ours.
 */
export async function readEndpoint(dataDir: string): Promise<FoundEndpoint | undefined> {
  const path = endpointFile(dataDir)
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return undefined
    throw new TuttiError('permission_denied', `${path} cannot be read: ${error.code}.`, { path }, error)
  })
  if (text === undefined) return undefined
  const endpoint = parseEndpoint(text, path)
  if (!isRunning(endpoint.pid)) return undefined
  return { ...endpoint, key: await readKey(endpoint.keyFile) }
}

/** @throws TuttiError `permission_denied`: the file must belong to this user alone (mode 0600). */
async function readKey(path: string): Promise<string> {
  const file = await stat(path).catch((error: unknown) => {
    throw new TuttiError(
      'permission_denied',
      `The local key ${path} cannot be read; restart the server.`,
      { path },
      error,
    )
  })
  if ((file.mode & 0o077) !== 0) {
    throw new TuttiError(
      'permission_denied',
      `Other users can read the local key ${path}. Run "chmod 600 ${path}", and restart the server with a new key if others may have read it.`,
      { path },
    )
  }
  return (await readFile(path, 'utf8')).trim()
}

function parseEndpoint(text: string, path: string): Endpoint {
  try {
    const { address, pid, startedAt, keyFile } = JSON.parse(text) as Partial<Endpoint>
    if (typeof address === 'string' && Number.isInteger(pid) && typeof keyFile === 'string') {
      return { address, pid: pid!, startedAt: String(startedAt), keyFile }
    }
  } catch {
    // Falls through to the one error below.
  }
  throw new TuttiError(
    'failed_precondition',
    `${path} is damaged; stop the server, remove the file and start again.`,
    {
      path,
    },
  )
}
