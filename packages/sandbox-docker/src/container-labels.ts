import { isAbandoned, passingName } from '@tutti/processes'
import type { SandboxRef, SandboxSpec } from '@tutti/sandbox'

/** What a container says about itself, so that any process finds what it must end. */
export const labelNames = {
  id: 'tutti.id',
  key: 'tutti.key',
  owner: 'tutti.owner',
  /** The folder of sandboxes that it belongs to: a host may have several workers with data folders of their own. */
  root: 'tutti.root',
  maker: 'tutti.maker',
  created: 'tutti.created',
  /** Instead of a key, on a container that only tries an image. */
  probe: 'tutti.probe',
} as const

export type ContainerLabels = Readonly<Record<string, string>>

export const containerName = (id: string): string => `tutti-${id}`

export const sandboxLabels = (root: string, id: string, spec: SandboxSpec, now: number): ContainerLabels => ({
  [labelNames.id]: id,
  [labelNames.key]: spec.key,
  [labelNames.owner]: spec.owner,
  [labelNames.root]: root,
  [labelNames.maker]: passingName('maker'),
  [labelNames.created]: new Date(now).toISOString(),
})

export const probeLabels = (root: string): ContainerLabels => ({
  [labelNames.root]: root,
  [labelNames.maker]: passingName('maker'),
  [labelNames.probe]: 'image',
})

/** Whether the process that made a container is dead. */
export const isOrphan = (labels: ContainerLabels): boolean =>
  isAbandoned('maker', labels[labelNames.maker] ?? '')

export const isOurs = (labels: ContainerLabels): boolean => labels[labelNames.maker] === passingName('maker')

export const refOf = (labels: ContainerLabels): SandboxRef => ({
  provider: 'docker',
  key: labels[labelNames.key] ?? '',
  id: labels[labelNames.id] ?? '',
})
