import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3'
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { freePort } from './free-port.ts'
import { s3ServerCommands, type S3ServerKind } from './s3-server-commands.ts'

/** A real S3 server on loopback with a folder of its own. */
export interface S3Server {
  readonly kind: S3ServerKind
  /** `http://127.0.0.1:PORT`; the same after a restart. */
  readonly endpoint: string
  readonly region: string
  readonly credentials: { readonly accessKeyId: string; readonly secretAccessKey: string }
  createBucket(name: string): Promise<void>
  /** SIGKILL; resolves when it is dead. */
  kill(): Promise<void>
  /** On the same port and folder; resolves when it answers. */
  restart(): Promise<void>
  /** Ends it and removes its folder. */
  remove(): Promise<void>
}

const portTries = 5

/** @param path of the program, from the tests' global setup. */
export async function createS3Server(kind: S3ServerKind, path: string): Promise<S3Server> {
  const folder = await mkdtemp(join(tmpdir(), `tutti-${kind}-`))
  const credentials = { accessKeyId: 'testkey', secretAccessKey: 'testsecret' }
  const log = join(folder, 'server.log')
  let running: { server: ChildProcess; guard: ChildProcess } | undefined
  let port = 0

  async function end(): Promise<void> {
    const ending = running
    running = undefined
    if (!ending) return
    // The guard first: later the number may be another process's.
    for (const child of [ending.guard, ending.server]) await killed(child)
  }

  async function start(): Promise<void> {
    const output = openSync(log, 'a')
    const { command, args, env } = s3ServerCommands[kind]({ path, port, folder, credentials })
    const server = spawn(command, args, {
      cwd: folder,
      env: { PATH: process.env['PATH'], HOME: process.env['HOME'], TMPDIR: folder, ...env },
      stdio: ['ignore', output, output],
    })
    server.on('error', () => {})
    closeSync(output)
    running = { server, guard: guardOf(server.pid, folder) }
    for (;;) {
      if (server.exitCode !== null || server.signalCode !== null || server.pid === undefined) {
        await end()
        throw new Error(`${kind} did not start:\n${readFileSync(log, 'utf8').slice(-2000)}`)
      }
      if (await answers(port)) return
      await setTimeout(20)
    }
  }

  try {
    await mkdir(join(folder, 'data'))
    // Between the choice of a port and its use another process may take it.
    for (let tried = 1; ; tried += 1) {
      port = await freePort()
      try {
        await start()
        break
      } catch (error) {
        if (tried === portTries) throw error
      }
    }
  } catch (error) {
    await rm(folder, { recursive: true, force: true })
    throw error
  }

  const endpoint = `http://127.0.0.1:${port}`
  const region = 'us-east-1'
  return {
    kind,
    endpoint,
    region,
    credentials,
    async createBucket(name) {
      const client = new S3Client({ endpoint, region, credentials, forcePathStyle: true })
      await client.send(new CreateBucketCommand({ Bucket: name })).finally(() => client.destroy())
    },
    kill: end,
    restart: start,
    async remove() {
      await end()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** Ends the server and removes its folder when this process dies without a chance to, as its standard input ends then. */
const guardOf = (pid: number | undefined, folder: string): ChildProcess =>
  spawn('sh', ['-c', 'read -r _; kill -9 "$1"; rm -rf "$2"', 'sh', String(pid), folder], {
    stdio: ['pipe', 'ignore', 'ignore'],
  })

async function killed(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
  const exit = once(child, 'exit')
  child.kill('SIGKILL')
  await exit
}

const answers = (port: number): Promise<boolean> =>
  fetch(`http://127.0.0.1:${port}/`).then(
    async (response) => {
      await response.arrayBuffer()
      return true
    },
    () => false,
  )
