import { join } from 'node:path'

export type S3ServerKind = 'ministack' | 'versitygw'

interface Place {
  /** Of the program. */
  readonly path: string
  readonly port: number
  readonly folder: string
  readonly credentials: { readonly accessKeyId: string; readonly secretAccessKey: string }
}

interface Command {
  readonly command: string
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string>>
}

/** How each server is started: on loopback only, with nothing outside its folder. */
export const s3ServerCommands: Readonly<Record<S3ServerKind, (place: Place) => Command>> = {
  ministack: ({ path, port, folder, credentials }) => ({
    command: 'python3',
    args: ['-m', 'ministack'],
    env: {
      PYTHONPATH: join(path, '..'),
      PYTHONDONTWRITEBYTECODE: '1',
      AUTH: 'true',
      SERVICES: 's3',
      SFTP_ENABLED: '0',
      // It would listen on a port that is the same for all.
      IOT_MTLS_ENABLED: '0',
      BIND_HOST: '127.0.0.1',
      MINISTACK_HOST: '127.0.0.1',
      GATEWAY_PORT: String(port),
      S3_PERSIST: '1',
      S3_DATA_DIR: join(folder, 'data'),
      STATE_DIR: join(folder, 'state'),
      AWS_ACCESS_KEY_ID: credentials.accessKeyId,
      AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey,
    },
  }),
  versitygw: ({ path, port, folder, credentials }) => ({
    command: path,
    // Without --keep-alive: it answers wrongly after streams then.
    args: ['--quiet', '--port', `127.0.0.1:${port}`, 'posix', join(folder, 'data')],
    env: { ROOT_ACCESS_KEY: credentials.accessKeyId, ROOT_SECRET_KEY: credentials.secretAccessKey },
  }),
}
