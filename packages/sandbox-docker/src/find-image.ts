import { orCancelled, TuttiError } from '@tutti/core'
import { engineError, statusOf } from './engine-error.ts'
import type { Engine } from './engine.ts'

export interface FoundImage {
  /** As it was asked for. */
  readonly name: string
  /** The same image for good, whatever the name means later. */
  readonly id: string
  /** PATH in it; undefined when it says nothing. */
  readonly path: string | undefined
  readonly volumes: readonly string[]
}

/** Names of the architectures of images, by those of Node. */
const architectures: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64' }

/**
 * Looks an image up, and fetches it when it is missing and `pull` says so.
 *
 * @throws TuttiError `failed_precondition` with the command that fetches it, or when it is for another processor.
 */
export async function findImage(
  engine: Engine,
  name: string,
  pull: 'never' | 'missing',
  signal: AbortSignal,
): Promise<FoundImage> {
  const found = (await inspect(engine, name, signal)) ?? (await fetched(engine, name, pull, signal))
  const wanted = architectures[process.arch]
  if (wanted !== undefined && found.Architecture !== '' && found.Architecture !== wanted) {
    throw new TuttiError(
      'failed_precondition',
      `The image ${name} is for ${found.Architecture}, this host is ${wanted}. Fetch it again with --platform linux/${wanted}.`,
      { image: name },
    )
  }
  const path = (found.Config.Env ?? []).find((line) => line.startsWith('PATH='))?.slice('PATH='.length)
  return { name, id: found.Id, path, volumes: Object.keys(found.Config.Volumes ?? {}) }
}

/** The part of an answer that is read; fields that an image does not have are null or missing. */
interface ImageDescription {
  readonly Id: string
  readonly Architecture: string
  readonly Config: {
    readonly Env?: readonly string[] | null
    readonly Volumes?: Readonly<Record<string, unknown>> | null
  }
}

async function inspect(
  { docker, socketPath }: Engine,
  name: string,
  signal: AbortSignal,
): Promise<ImageDescription | undefined> {
  try {
    return await orCancelled(docker.getImage(name).inspect(), signal)
  } catch (thrown) {
    if (statusOf(thrown) === 404) return undefined
    throw engineError(thrown, `look up the image ${name}`, socketPath)
  }
}

async function fetched(
  engine: Engine,
  name: string,
  pull: 'never' | 'missing',
  signal: AbortSignal,
): Promise<ImageDescription> {
  const command = `${engine.kind} pull ${name}`
  if (pull === 'missing') {
    try {
      const progress = await engine.docker.pull(name, { abortSignal: signal })
      await new Promise<void>((resolve, reject) =>
        engine.docker.modem.followProgress(progress, (error, steps: readonly { error?: string }[]) => {
          // It answered that all is well before it began, so that a failure is one of the steps.
          const problem = steps.find((step) => step.error !== undefined)?.error
          if (error) reject(error)
          else if (problem === undefined) resolve()
          else reject(Object.assign(new Error(problem), { statusCode: 500 }))
        }),
      )
    } catch (thrown) {
      throw engineError(thrown, `fetch the image ${name}`, engine.socketPath)
    }
    const found = await inspect(engine, name, signal)
    if (found) return found
  }
  throw new TuttiError(
    'failed_precondition',
    `The container engine does not have the image ${name}. Fetch it: ${command}`,
    { image: name, socket: engine.socketPath },
  )
}
