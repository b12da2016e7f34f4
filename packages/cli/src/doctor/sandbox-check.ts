import type { ResolvedConfig } from '../config/load-config.ts'
import { describeLocalSandbox } from '@tutti/sandbox'

interface SandboxCheck {
  readonly name: 'sandbox'
  readonly status: 'ok' | 'warning' | 'failed'
  readonly found: string
  readonly origin: string
  readonly fix: string
}

/** What works of the sandboxes below `root` that the settings choose, for doctor: from here and from the server the same words. */
export const sandboxCheck = (
  root: string,
  config: ResolvedConfig,
  env: Readonly<Record<string, string | undefined>>,
): Promise<SandboxCheck> =>
  config['sandboxes.provider'] === 'docker' ? containers(root, config, env) : local(root)

async function local(root: string): Promise<SandboxCheck> {
  const { bubblewrap, limiter, limiterNote, disk, diskNote } = await describeLocalSandbox({ root })
  if (!bubblewrap.works) {
    const { problem, remedy } = bubblewrap
    return { name: 'sandbox', status: 'failed', found: problem, origin: '', fix: remedy }
  }
  const weaker = [limiter === 'watchdog' ? limiterNote : '', disk === 'watchdog' ? diskNote : ''].filter(
    Boolean,
  )
  return {
    name: 'sandbox',
    status: weaker.length > 0 ? 'warning' : 'ok',
    found: `bubblewrap ${bubblewrap.version}; limits: ${limiter}; disk: ${disk}`,
    origin: '',
    fix: weaker.join('; '),
  }
}

async function containers(
  root: string,
  config: ResolvedConfig,
  env: Readonly<Record<string, string | undefined>>,
): Promise<SandboxCheck> {
  const failed = (found: string, fix: string, origin = ''): SandboxCheck => ({
    name: 'sandbox',
    status: 'failed',
    found,
    origin,
    fix,
  })
  const name = String(config['sandboxes.image'])
  if (name === '') {
    return failed(
      'sandboxes.provider is docker, and sandboxes.image names no image',
      'Name an image with git and glibc: TUTTI_SANDBOXES_IMAGE=NAME, or sandboxes.image in a file.',
    )
  }
  const { describeDockerSandbox } = await import('@tutti/sandbox-docker')
  const socketPath = String(config['sandboxes.engine'])
  const { engine, image, problem, disk, diskNote } = await describeDockerSandbox({
    root,
    nodePath: process.execPath,
    image: name,
    env,
    ...(socketPath !== '' && { socketPath }),
  })
  if (!engine) return failed('no container engine', problem ?? '')
  const engineWords = `${engine.kind} ${engine.version}${engine.rootless ? ', rootless' : ''}`
  if (!image) return failed(`${engineWords}; no usable image`, problem ?? '', engine.socketPath)
  return {
    name: 'sandbox',
    status: disk === 'watchdog' ? 'warning' : 'ok',
    found: `${engineWords}; image ${image.name} with git ${image.git}, glibc ${image.glibc}; disk: ${disk}`,
    origin: engine.socketPath,
    fix: disk === 'watchdog' ? diskNote : '',
  }
}
