import { TuttiError } from '@tutti/core'
import { insidePaths } from '@tutti/sandbox/host'
import { attachContainer } from './attach-container.ts'
import { probeLabels } from './container-labels.ts'
import { containerProfile } from './container-profile.ts'
import type { ContainerUser } from './container-user.ts'
import { demultiplex } from './demultiplex.ts'
import { engineError, wordsOf } from './engine-error.ts'
import type { Engine } from './engine.ts'
import type { FoundImage } from './find-image.ts'
import { removeContainer } from './remove-container.ts'

/** What a sandbox must know of its image. */
export interface CheckedImage extends FoundImage {
  /** Its own users and groups, as they stand in /etc/passwd and /etc/group. */
  readonly passwd: string
  readonly group: string
  /** Versions of what it has, for people. */
  readonly git: string
  readonly glibc: string
}

export interface CheckRequest {
  readonly engine: Engine
  readonly image: FoundImage
  /** Of this host, links resolved. */
  readonly nodePath: string
  readonly user: ContainerUser
  readonly root: string
  readonly seccomp: string
}

const probeLimits = {
  memoryBytes: 512 << 20,
  pids: 64,
  cpuPercent: 200,
  diskBytes: 0,
  files: 0,
  fileBytes: 1 << 20,
}
const mark = '--tutti--'
const maxOutputBytes = 1 << 20

/** Four parts with {@link mark} between them, by nothing but a shell where the image has nothing else. */
const script = `
git --version 2>&1; echo "${mark}"
${insidePaths.node} -p 'process.version + " " + process.report.getReport().header.glibcVersionRuntime' 2>&1; echo "${mark}"
cat /etc/passwd 2>/dev/null; echo "${mark}"
cat /etc/group 2>/dev/null
`

/**
 * Tries an image in a container of its own, with all that a sandbox has but its folders (half a second): a shell, git, and this host's Node.
 *
 * @throws TuttiError `failed_precondition` that names the image, what is missing in it and what to do.
 */
export async function checkImage(request: CheckRequest, signal: AbortSignal): Promise<CheckedImage> {
  const { image } = request
  const parts = (await runProbe(request, signal)).split(`${mark}\n`)
  const [git = '', node = '', passwd = '', group = ''] = parts
  const refuse = (problem: string, remedy: string) =>
    new TuttiError(
      'failed_precondition',
      `The image ${image.name} cannot be used: ${problem}. To mend it: ${remedy}.`,
      { image: image.name },
    )
  if (!/^v\d+\./m.test(node)) {
    throw refuse(
      `this host's Node does not start in it (${words(node)})`,
      'use an image with glibc 2.28 or newer, libstdc++ and libatomic; on Debian and Ubuntu add the packages libstdc++6 and libatomic1, ' +
        'Alpine (musl) cannot be used',
    )
  }
  if (!/^git version /m.test(git))
    throw refuse(`it has no git (${words(git)})`, 'add git to it, or take an image that has it')
  return { ...image, passwd, group, git: wordAt(git, 2), glibc: wordAt(node, 1) }
}

const wordAt = (line: string, index: number): string => line.trim().split(' ')[index] ?? ''

const words = (text: string): string =>
  text.trim().split('\n').slice(-3).join(' ').slice(0, 300) || 'no answer'

async function runProbe(
  { engine, image, nodePath, user, root, seccomp }: CheckRequest,
  signal: AbortSignal,
): Promise<string> {
  const { docker, socketPath } = engine
  let id: string | undefined
  try {
    const container = await docker.createContainer({
      ...containerProfile({
        image: image.id,
        volumes: image.volumes,
        labels: probeLabels(root),
        user,
        engine: engine.kind,
        seccomp,
        limits: probeLimits,
        network: 'none',
        readOnly: [{ host: nodePath, inside: insidePaths.node }],
        script,
      }),
      abortSignal: signal,
    })
    id = container.id
    const streams = await attachContainer(socketPath, id, signal)
    try {
      const { stdout, stderr } = demultiplex(streams)
      stderr.resume()
      await container.start({ abortSignal: signal })
      const chunks: Buffer[] = []
      let length = 0
      for await (const chunk of stdout as AsyncIterable<Buffer>) {
        length += chunk.length
        if (length > maxOutputBytes) break
        chunks.push(chunk)
      }
      return Buffer.concat(chunks).toString()
    } finally {
      streams.destroy()
    }
  } catch (thrown) {
    // The engine finds no shell before there is a process that could say so.
    if (/\/bin\/sh/.test(wordsOf(thrown)) && /not found|no such file/i.test(wordsOf(thrown))) {
      throw new TuttiError(
        'failed_precondition',
        `The image ${image.name} cannot be used: it has no /bin/sh. To mend it: take an image with a shell and git.`,
        { image: image.name },
        thrown,
      )
    }
    throw engineError(thrown, `start a container of the image ${image.name}`, socketPath)
  } finally {
    if (id !== undefined) await removeContainer(engine, id, new AbortController().signal)
  }
}
