/** Where the sites are, how much of each is in use, and where there is trouble. */
import { useNavigate } from '@tanstack/react-router';
import {
  type GeoPermissibleObjects,
  type GeoProjection,
  geoGraticule10,
  geoNaturalEarth1,
  geoPath,
} from 'd3-geo';
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'react';
import { feature, mesh } from 'topojson-client';
import { count, percent } from '../../ui/format';
import type { OverviewSitesQuery } from './overview.gql';

export type OverviewSite = OverviewSitesQuery['sites']['nodes'][number];

type Atlas = Parameters<typeof feature>[0] & { objects: { countries: Parameters<typeof feature>[1] } };
interface World {
  land: GeoPermissibleObjects;
  borders: GeoPermissibleObjects;
}

/** Below this extent, in degrees, coasts and borders are drawn in detail. */
const DETAIL_BELOW = 60;

async function load(detailed: boolean): Promise<World> {
  const { default: atlas } = detailed
    ? await import('world-atlas/countries-50m.json')
    : await import('world-atlas/countries-110m.json');
  // TypeScript reads the JSON's `type` fields as any string.
  const world = atlas as unknown as Atlas;
  const { countries } = world.objects;
  return {
    land: feature(world, countries) as GeoPermissibleObjects,
    borders: mesh(world, countries as Parameters<typeof mesh>[1], (a, b) => a !== b),
  };
}

interface Labelled {
  site: OverviewSite;
  at: [number, number];
  radius: number;
  /** Its name stands at the left. */
  left: boolean;
}

const LABEL_PX = { width: 128, height: 28 };

/** Where each site is drawn, the largest first, so that small ones lie on top; names avoid one another. */
function labelled(
  sites: readonly OverviewSite[],
  projection: GeoProjection,
  width: number,
  most: number,
): Labelled[] {
  const boxes: [number, number, number, number][] = [];
  const free = ([x, y, w, h]: [number, number, number, number]): number =>
    boxes.filter(([bx, by, bw, bh]) => x < bx + bw && bx < x + w && y < by + bh && by < y + h).length;
  const places = [...sites]
    .sort((a, b) => b.cpus - a.cpus)
    .flatMap((site) => {
      const at = projection([site.longitude!, site.latitude!]);
      const radius = 9 + 13 * Math.sqrt(site.cpus / most);
      if (at) boxes.push([at[0] - radius, at[1] - radius, 2 * radius, 2 * radius]);
      return at ? [{ site, at, radius }] : [];
    });
  return places.map((place) => {
    const { at, radius } = place;
    const { width: w, height: h } = LABEL_PX;
    const right: [number, number, number, number] = [at[0] + radius + 5, at[1] - h / 2, w, h];
    const opposite: [number, number, number, number] = [at[0] - radius - 5 - w, at[1] - h / 2, w, h];
    const left = right[0] + w > width || (free(opposite) < free(right) && opposite[0] > 0);
    boxes.push(left ? opposite : right);
    return { ...place, left };
  });
}

interface Extent {
  west: number;
  east: number;
  south: number;
  north: number;
}

/** What the map shows: all places, by longitude and latitude, with some space around. */
function extentOf(points: readonly (readonly [number, number])[]): Extent {
  if (points.length === 0) return { west: -140, east: 160, south: -50, north: 70 };
  const lons = points.map(([lon]) => lon);
  const lats = points.map(([, lat]) => lat);
  const pad = 3.5;
  return {
    west: Math.min(...lons) - pad,
    east: Math.max(...lons) + pad,
    south: Math.max(-85, Math.min(...lats) - pad),
    north: Math.min(85, Math.max(...lats) + pad),
  };
}

/** The projection, and the paths of land, borders and graticule. */
function drawnOf(world: World, { west, east, south, north }: Extent, width: number, height: number) {
  const corners: GeoPermissibleObjects = {
    type: 'MultiPoint',
    coordinates: [
      [west, south],
      [west, north],
      [east, south],
      [east, north],
      [(west + east) / 2, north],
      [(west + east) / 2, south],
    ],
  };
  const projection = geoNaturalEarth1()
    .rotate([-(west + east) / 2, 0])
    .fitExtent(
      [
        [12, 12],
        [width - 12, height - 12],
      ],
      corners,
    );
  projection.clipExtent([
    [-5, -5],
    [width + 5, height + 5],
  ]);
  const path = geoPath(projection);
  return {
    projection,
    land: path(world.land) ?? '',
    borders: path(world.borders) ?? '',
    lines: path(geoGraticule10()) ?? '',
  };
}

// biome-ignore lint/complexity/noExcessiveLinesPerFunction: the drawing, with a few lines for each of its parts
export default function SiteMap({ sites }: { sites: readonly OverviewSite[] }) {
  const navigate = useNavigate();
  const frame = useRef<HTMLDivElement>(null);
  const [size, setSize] = useState({ width: 0, height: 0 });
  const [world, setWorld] = useState<World | null>(null);
  const placed = sites.filter(({ latitude, longitude }) => latitude !== null && longitude !== null);
  const places = JSON.stringify(placed.map(({ latitude, longitude }) => [longitude, latitude]));

  useLayoutEffect(() => {
    const node = frame.current!;
    const watch = new ResizeObserver(() => setSize({ width: node.clientWidth, height: node.clientHeight }));
    watch.observe(node);
    return () => watch.disconnect();
  }, []);

  const extent = useMemo(() => extentOf(JSON.parse(places) as [number, number][]), [places]);

  const detailed = Math.max(extent.east - extent.west, extent.north - extent.south) < DETAIL_BELOW;
  useEffect(() => {
    let gone = false;
    // The outline first; the detail when nothing else is to be done.
    void load(false).then((loaded) => {
      if (gone) return;
      setWorld(loaded);
      if (!detailed) return;
      const idle = window.requestIdleCallback ?? ((work: () => void) => setTimeout(work, 300));
      idle(() => void load(true).then((fine) => !gone && setWorld(fine)));
    });
    return () => {
      gone = true;
    };
  }, [detailed]);

  const { width, height } = size;
  const drawn = useMemo(
    () => (world && width > 0 ? drawnOf(world, extent, width, height) : null),
    [world, width, height, extent],
  );

  const most = Math.max(...placed.map(({ cpus }) => cpus), 1);
  return (
    <div ref={frame} className="map">
      {drawn && (
        <svg width={width} height={height} role="group" aria-label="Map of the sites">
          <path d={drawn.lines} className="map-lines" />
          <path d={drawn.land} className="map-land" />
          <path d={drawn.borders} className="map-borders" />
          {labelled(placed, drawn.projection, width, most).map(({ site, at, radius, left }) => {
            const used = site.cpus > 0 ? site.cpusUsed / site.cpus : 0;
            const around = 2 * Math.PI * radius;
            const bad =
              site.state !== 'UP' || site.machines.some(({ silent, state }) => silent || state === 'DOWN');
            const text = `${site.name} ${percent(used)} · ${count(site.queuedJobs + site.metaQueuedJobs)} queued, ${count(site.runningJobs)} running, ${count(site.cpusUsed)} of ${count(site.cpus)} CPUs in use`;
            const go = (): void => void navigate({ to: '/sites/$id', params: { id: site.id } });
            return (
              <g
                key={site.id}
                transform={`translate(${at[0]}, ${at[1]})`}
                role="link"
                tabIndex={0}
                aria-label={text}
                className="map-site"
                onClick={go}
                onKeyDown={(event) => event.key === 'Enter' && go()}
              >
                <circle r={radius} className="map-ring" />
                <circle
                  r={radius}
                  className={`map-used ${bad ? 'bad' : ''}`}
                  strokeDasharray={`${around * used} ${around}`}
                  transform="rotate(-90)"
                />
                <circle r={Math.max(3, radius - 6)} className={`map-heart ${bad ? 'bad' : ''}`} />
                <text
                  x={left ? -radius - 7 : radius + 7}
                  y={-1}
                  textAnchor={left ? 'end' : 'start'}
                  className="map-name"
                >
                  {site.name}
                </text>{' '}
                <text
                  x={left ? -radius - 7 : radius + 7}
                  y={12}
                  textAnchor={left ? 'end' : 'start'}
                  className="map-about"
                >
                  {percent(used)} · {count(site.queuedJobs + site.metaQueuedJobs)} queued
                </text>
              </g>
            );
          })}
        </svg>
      )}
    </div>
  );
}
