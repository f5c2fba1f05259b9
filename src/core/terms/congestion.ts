/** Whether a site is congested (Anjum et al., section 7; exact rules: diana.md, "Congestion and migration"). */
export interface Congestion {
  /** Jobs a second. */
  arrival: number;
  service: number;
  /** `(arrival − service)/arrival`; 0 where nothing arrives. */
  value: number;
  congested: boolean;
}

/** Congested if the value is above the threshold; never where nothing arrives. */
export function congestionOf(
  { arrival, service }: Pick<Congestion, 'arrival' | 'service'>,
  threshold: number,
): Congestion {
  const value = arrival === 0 ? 0 : (arrival - service) / arrival;
  return { arrival, service, value, congested: arrival !== 0 && value > threshold };
}
